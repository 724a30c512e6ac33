"""Simulated runs that experiments and campaigns share."""
