"""Pictures of simulated and of live runs."""
