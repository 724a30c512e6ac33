"""Requests of service classes in a live run."""
