"""What a simulated run is put through: outages, gaps, failures, crashes, slow tables."""
