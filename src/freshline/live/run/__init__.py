"""One run as a whole: how it opens, learns, reports and ends."""
