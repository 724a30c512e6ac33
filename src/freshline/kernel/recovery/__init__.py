"""Recovery of late tables: modes, promised times, admission, certificates (paper 001)."""
