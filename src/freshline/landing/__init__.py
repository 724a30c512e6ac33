"""Finding a feed's data files: which are there, which are new, and how new their records are."""
