"""The papers' evaluations as programs: they run, draw, and compare paper and measurement."""
