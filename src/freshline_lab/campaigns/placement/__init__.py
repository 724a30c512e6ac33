"""Generated operator graphs."""
