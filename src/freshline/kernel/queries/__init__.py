"""Continuous queries: a new answer in every stride (paper 000)."""
