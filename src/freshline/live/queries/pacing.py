"""The size of an iteration's next part, so that it ends within its budget and other jobs get their turn."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from freshline.planning.costs.iterations import FittedParts, PastPart
from freshline.sql.slices import SLICES

# One slice has no scatter: an estimate needs two.
_SLICES_LEAST: Final = 2
# The sizes, in turn, of an iteration's first part while costs are not known. Parts of different sizes
# separate the cost of a part from that of a row, even if there is time for one part only.
UNKNOWN: Final = (SLICES // 16, SLICES // 4, SLICES)
# Once costs are known, every so many iterations one reads a part of another size.
_LOOK_EVERY: Final = 16
_LOOK_SHARE: Final = 8


class Pacing:
    """The parts of one iteration: their durations and the size of the next."""

    def __init__(
        self,
        number: int,
        budget_us: int | None,
        keep: Fraction,
        part_us: int,
        fitted: FittedParts | None,
        rows_per_slice: float,
        look: int = 0,  # slices to read even if there seems to be no time
        rows_first: int = 0,  # rows that the first part reads besides its slices
    ) -> None:
        self._number = number
        self._look = look
        self._looks = number % _LOOK_EVERY == 0
        self._budget_us = budget_us
        self._most = SLICES if keep == 1 else max(_SLICES_LEAST, int(SLICES * keep)) if keep else 0
        self._part_us = part_us
        self._fitted = fitted
        self._rows_per_slice = rows_per_slice
        self._rows_first = rows_first
        self.spent_us = 0
        self.rest_us = 0  # the share of `spent_us` outside parts
        self.read = 0
        self.rows = 0
        self.parts: list[PastPart] = []
        self.looked = False  # whether it read although there seemed to be no time

    def next_slices(self) -> int:
        """The number of slices of the next part; 0: there is none."""
        left = self._most - self.read
        if left <= 0:
            return 0
        return min(left, self._unknown() if self._fitted is None else self._known(self._fitted))

    def took(self, began: int, slices: int, rows: int, took_us: int) -> None:
        """Records a part of the iteration that began at `began`."""
        self.parts.append(PastPart(began, took_us, slices, rows))
        self.spent_us += took_us
        self.read += slices
        self.rows += rows
        self._rows_per_slice = max(self._rows_per_slice, (rows - self._rows_first) / slices)
        self._rows_first = 0

    def rested(self, took_us: int) -> None:
        """Records time spent outside parts."""
        self.spent_us += took_us
        self.rest_us += took_us

    def _known(self, fitted: FittedParts) -> int:
        slices = max(1, fitted.slices_in(self._part_us, self._rows_per_slice))
        if self._looks and not self.parts:
            slices = max(1, slices // _LOOK_SHARE)
        if self._budget_us is None:
            return slices
        left_us = self._budget_us - self.spent_us - max(0, fitted.rest_us - self.rest_us)
        left_us -= int(fitted.us_per_row * self._rows_first)
        in_budget = fitted.slices_in(left_us, self._rows_per_slice)
        if self.read + min(slices, in_budget) < _SLICES_LEAST:
            if in_budget >= _SLICES_LEAST:
                return _SLICES_LEAST
            if not self.parts and self._look:
                self.looked = True
                return self._look
            return 0
        return min(slices, in_budget)

    def _unknown(self) -> int:
        if not self.parts:
            return UNKNOWN[(self._number - 1) % len(UNKNOWN)]
        if self._budget_us is None:
            return SLICES
        # All the time is put down to the rows: a larger part takes at most proportionally longer.
        last = self.parts[-1]
        left_us = self._budget_us - self.spent_us
        if last.duration_us > left_us:
            return 0
        return last.slices * left_us // max(1, last.duration_us)
