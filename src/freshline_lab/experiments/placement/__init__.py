"""Paper 002, figures 3, 4 and 7: deadlines across nodes."""
