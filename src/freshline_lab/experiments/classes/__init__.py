"""Paper 003, figures 7 to 9: service classes."""
