"""Warms Spark up: it compiles the plans of updates before the search for files."""
