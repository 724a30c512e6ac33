"""A run's service: HTTP on the loopback, for whoever may read the storage."""
