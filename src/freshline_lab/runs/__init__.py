"""Random warehouses, and simulated runs that experiments and campaigns share."""
