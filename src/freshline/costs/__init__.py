"""What an update costs: at worst, on average, in one simulated run, and as learned from runs."""
