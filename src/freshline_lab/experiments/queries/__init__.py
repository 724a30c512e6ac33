"""Paper 000, figures 8 to 12: continuous queries under overload."""
