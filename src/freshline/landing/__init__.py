"""Discovery of a feed's data files: which exist, which are new, and the times of their records."""
