"""Several runs on one storage: steps, followed tables, the supervisor."""
