"""Recovery of late tables: modes, promises, admission, certificates (paper 001)."""
