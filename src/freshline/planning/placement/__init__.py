"""Operators with end-to-end deadlines on several nodes: where each runs, and its sub-deadline (paper 002)."""
