"""The conditions of a simulated run: outages, gaps, failures, crashes, slow tables."""
