"""Generated input by the thousand, and what must hold for it."""
