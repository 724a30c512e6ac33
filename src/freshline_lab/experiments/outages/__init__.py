"""Paper 001, figure 9: recovery after an outage."""
