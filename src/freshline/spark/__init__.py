"""Spark's part: sessions, reading data files, running an update."""
