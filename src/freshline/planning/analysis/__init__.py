"""Schedulability and tardiness on plain task sets, on integers and exact rationals."""
