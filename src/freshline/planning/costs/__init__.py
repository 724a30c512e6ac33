"""What an update, an answer or a part costs: at worst, on average, simulated, and learned from runs."""
