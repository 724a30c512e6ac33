"""Generated statements, compared with plain Spark."""
