"""Continuous queries and requests: reading slices, estimates, merged answers."""
