"""Generated input by the thousand, with the properties that must hold for it."""
