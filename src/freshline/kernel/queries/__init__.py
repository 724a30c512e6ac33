"""Continuous queries, answered again in every stride (paper 000)."""
