"""Evaluations of papers and campaigns of tests. The product imports this package only when asked for."""
