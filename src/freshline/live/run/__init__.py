"""One run as a whole: its start, loop, learned costs and end."""
