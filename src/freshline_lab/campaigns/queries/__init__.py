"""Generated sets of continuous queries."""
