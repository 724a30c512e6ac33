"""Doubles and generators to test warehouses with."""
