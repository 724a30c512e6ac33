"""Outages, failures and crashes of generated warehouses."""
