"""Warehouses with all kinds of work beside each other: generated, planned, simulated, replayed and run."""
