"""The HTTP service of a run on the loopback, for users that may read the storage."""
