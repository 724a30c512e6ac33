"""SQL: what a query reads, and whether it can be kept up to date a piece of time at a time."""
