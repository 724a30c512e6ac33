"""The papers' evaluations as programs: they run, draw, and set paper and measurement side by side."""
