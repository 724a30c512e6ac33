"""The cost of an update, an answer or a part: worst case, average, simulated, and learned from runs."""
