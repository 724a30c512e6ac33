"""What an update costs: at worst, on average, and in one simulated run."""
