"""Pure functions from definitions and costs to verdicts, bounds, placements and shedding."""
