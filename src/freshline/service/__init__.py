"""A run's service: HTTP on the loopback, for users who may read the storage."""
