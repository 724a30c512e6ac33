"""Draws the costs of simulated jobs."""

from __future__ import annotations

import random
from fractions import Fraction

from freshline.definitions.sections.cost import Cost


class CostDraws:
    """Draws (S + R·L)·uniform[1 − b, 1 + b] for the jobs of one table, one after another.

    Each (seed, table) has its own random stream, so a table's k-th job draws the same number under every
    policy.
    """

    __slots__ = ("_random", "_rate_denominator", "_rate_numerator", "_startup", "_variability")

    def __init__(self, cost: Cost, seed: int, table: str) -> None:
        self._rate_numerator = cost.rate.numerator
        self._rate_denominator = cost.rate.denominator
        self._startup = cost.startup_us * cost.rate.denominator
        self._variability = float(cost.variability)
        self._random = random.Random(f"cost:{seed}:{table}").random

    def draw_us(self, length_us: int) -> int:
        """The cost of the next job, rounded down, at least 1 µs."""
        scaled = self._startup + self._rate_numerator * length_us
        variability = self._variability
        if variability:
            factor = 1.0 - variability + 2.0 * variability * self._random()
            return int(scaled * factor / self._rate_denominator) or 1
        return scaled // self._rate_denominator or 1


class RowCostDraws:
    """Draws (S + r·n)·uniform[1 − b, 1 + b] for the jobs of one step that reads n rows, on its node."""

    __slots__ = ("_per_row", "_random", "_startup", "_variability")

    def __init__(self, cost: Cost, speed: Fraction, seed: int, step: str) -> None:
        self._startup = float(cost.startup_us / speed)
        self._per_row = float(cost.per_row_us / speed)
        self._variability = float(cost.variability)
        self._random = random.Random(f"cost:{seed}:{step}").random

    def draw_us(self, rows: float) -> int:
        """The cost of the next job, rounded down, at least 1 µs."""
        work = self._startup + self._per_row * rows
        variability = self._variability
        factor = 1.0 - variability + 2.0 * variability * self._random() if variability else 1.0
        return int(work * factor) or 1
