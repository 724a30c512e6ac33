"""Updates: from data files or source tables to the rows of a table."""
