"""Learns the cost of a query's answers from their parts: per part, per row, and the rest.

A query is answered in parts, a job each. The rows of a part decide its length, and the allowed length of a
part decides their number: so the history holds parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from freshline.planning.costs.fit import PastRun, slope_of, upper
from freshline.sql.slices import SLICES

ITERATIONS_LEAST: Final = 3
_SELECTIVITY_LEAST: Final = Fraction(1, 1_000)
_GRAIN: Final = 1_000_000


# A part is this many times as long as its fixed cost, or that would take most of the time.
PART_OF_BEGINNING: Final = 3
# The shares of the shortest deadline that may be spent waiting for a part: the first as a rule, up to the
# second if a part has a high fixed cost.
_WAIT, _WAIT_MOST = 4, 2


def part_length_us(shortest_us: int, begin_us: int) -> int:
    """How long parts may be beside queries of that shortest deadline, given the fixed cost of a part.

    >>> part_length_us(2_000_000, 100_000), part_length_us(2_000_000, 200_000)
    (500000, 600000)
    >>> part_length_us(2_000_000, 900_000), part_length_us(2_000_000, 1_200_000)
    (1350000, 1800000)
    """
    wanted_us = min(PART_OF_BEGINNING * begin_us, shortest_us // _WAIT_MOST)
    return max(shortest_us // _WAIT, wanted_us, begin_us * 3 // 2)


class PastPart(NamedTuple):
    """A part of an answer, as far as its cost is concerned."""

    iteration: int  # its start, in µs since the Unix epoch
    duration_us: int
    slices: int  # 0: the work before, between and after the parts that read
    rows: int  # read; if `slices` is 0: rows of the answer


@dataclass(frozen=True, slots=True)
class FittedParts:
    """The cost of a query's answers, at the upper quantile."""

    part_us: int  # the fixed cost of each part
    us_per_row: float
    rest_us: int  # of each answer, beside its parts
    selectivity: Fraction  # rows of an answer over rows read
    iterations: int  # that it was learned from

    def read_us(self, rows: float) -> int:
        """The cost of a part that reads that many rows."""
        return ceil(self.part_us + self.us_per_row * rows)

    def slices_in(self, time_us: int, rows_per_slice: float) -> int:
        """How many slices a part of at most that length reads; 0: its fixed cost is already longer."""
        left_us = time_us - self.part_us
        if left_us < 0:
            return 0
        per_slice = self.us_per_row * rows_per_slice
        return SLICES if per_slice * SLICES <= left_us else int(left_us / per_slice)

    def cost_us(self, rows: int, part_us: int) -> tuple[int, int]:
        """(E, a) of an answer over that many rows with parts of at most that length."""
        slices = max(1, self.slices_in(part_us, rows / SLICES))
        parts = -(-SLICES // slices)
        # The first part is always needed, however little is read.
        fixed_us = self.rest_us + self.part_us
        return ceil(fixed_us + (parts - 1) * self.part_us + self.us_per_row * rows), fixed_us


def fit_parts(parts: Sequence[PastPart]) -> FittedParts | None:
    """The fit to a query's own answers; None if they do not show it yet."""
    answers = [list(group) for _, group in groupby(parts, key=lambda part: part.iteration)]
    reading = [part for part in parts if part.slices]
    if len(answers) < ITERATIONS_LEAST or not reading:
        return None
    rows, took_us = median(part.rows for part in reading), median(part.duration_us for part in reading)
    per_row = _per_row(reading, rows)
    if per_row is None:
        return None
    per_row = min(per_row, took_us / rows if rows else 0.0)
    part_us = max(1.0, took_us - per_row * rows)
    rests_us = [float(sum(part.duration_us for part in each if not part.slices)) for each in answers]
    # For each part: after an underestimated part the budget is exceeded.
    worst = max(1.0, upper([part.duration_us / (part_us + per_row * part.rows) for part in reading]))
    return FittedParts(
        ceil(part_us * worst), per_row * worst, ceil(upper(rests_us)), _selectivity(parts), len(answers)
    )


def _per_row(parts: Sequence[PastPart], rows: float) -> float | None:
    """None if all parts are alike: then they do not show the cost of a part that reads less.

    Slices show it too, if they are nearly empty.
    """
    found = slope_of([PastRun(0, part.duration_us, part.rows, part.slices, 0) for part in parts])
    if found is not None:
        return found
    by_slice = slope_of([PastRun(0, part.duration_us, part.slices, part.slices, 0) for part in parts])
    if by_slice is None:
        return None
    return by_slice * median(part.slices for part in parts) / rows if rows else 0.0


def _selectivity(parts: Sequence[PastPart]) -> Fraction:
    read = sum(part.rows for part in parts if part.slices)
    found = sum(part.rows for part in parts if not part.slices)
    share = Fraction(ceil(Fraction(found, max(1, read)) * _GRAIN), _GRAIN)
    return min(Fraction(1), max(_SELECTIVITY_LEAST, share))
