"""Tables: their intake, the release of their updates, their state (paper 004)."""
