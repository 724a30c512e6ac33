"""Continuous queries in a live run."""
