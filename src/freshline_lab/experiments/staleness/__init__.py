"""Paper 004, section 5: observed staleness and its bounds."""
