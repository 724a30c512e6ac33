"""Tables: what they load, when their updates are released, how they are (paper 004)."""
