"""How far off an answer from some of the slices may be: 95 % intervals, from the scatter between slices.

Slices are a sample without replacement of 256. A total is scaled, an average is a ratio of two totals; the
variance of both is that between slices, less the share that was read. Of variances it is found by leaving out
one slice after the other (the jackknife). Student's t has a degree of freedom less than slices were read.

By itself that covers too little where a group has few rows, or where few of them make up most of it. A
request's answer says of which values this is so. A continuous query's does not: there an interval is at least
as wide as that of rows dealt one by one, with a few rows of all groups' lent to each; and t has as many
degrees of freedom as there are slices that matter for the group, not as were read.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from freshline.sql.slices import SLICES

Numbers = npt.NDArray[np.float64]
# So many rows of the average of all groups are lent to each: to a total, and to the scatter of an average.
_LENT: Final = 2.0
_LENT_SCATTER: Final = 1.0
# Student's t, 97.5 %, of 1 to 10 degrees of freedom; beyond them by its expansion.
_T: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_Z: Final = 1.959964


class Groups:
    """Partial results of slices, each of a group in a slice: the number of its group, of `size`.

    What rows in no slice come to, by group, is known: it is told where it matters.
    """

    def __init__(self, group: npt.NDArray[np.int64], size: int, slices: int, lends: bool = True) -> None:
        self._group = group
        self._size = size
        self._slices = slices  # that were read
        self._share = slices / SLICES
        self._lends = lends  # whether groups of few rows are to be covered too

    def added(self, values: Numbers) -> Numbers:
        """By group."""
        return np.asarray(np.bincount(self._group, weights=values, minlength=self._size), np.float64)

    def of_total(self, totals: Numbers, counts: Numbers, squares: Numbers) -> Numbers:
        """By group, half the length of the interval of a total, scaled.

        It is of partial totals, of the numbers of values that they add up, and of these values' squares.
        """
        total, squared = self.added(totals), self.added(totals**2)
        between = self._between(squared - total**2 / self._slices) * SLICES**2 / self._slices
        if not self._lends:
            return self._plain(between)
        rows, of_rows = self.added(counts), self.added(squares)
        mean = of_rows.sum() / max(1.0, rows.sum())
        lent = np.maximum(of_rows, rows * (of_rows + _LENT * mean) / (rows + _LENT))
        by_rows = (1 - self._share) / self._share**2 * lent
        return self._half(np.maximum(between, by_rows), totals)

    def of_mean(
        self, totals: Numbers, counts: Numbers, squares: Numbers, known: tuple[Numbers, Numbers]
    ) -> Numbers:
        """The same of an average; NaN where nothing tells how far values lie apart.

        `known` are totals and counts of rows in no slice.
        """
        rows, seen = self.added(counts), self.added(totals)
        all_rows = known[1] + rows / self._share
        mean = (known[0] + seen / self._share) / np.where(all_rows > 0, all_rows, 1.0)
        left = totals - mean[self._group] * counts
        apart = self.added(left**2) - self.added(left) ** 2 / self._slices
        # Of an average that is of all rows, scaled.
        size = np.maximum(1.0, all_rows * self._share)
        between = self._between(apart) * self._slices / size**2
        if not self._lends:
            return self._plain(between)
        apart = np.maximum(0.0, self.added(squares) - 2 * mean * seen + mean**2 * rows)
        scatter = self._scatter(rows, mean, apart)
        by_rows = (1 - self._share) * (apart + _LENT_SCATTER * scatter) / size**2
        return self._half(np.maximum(between, by_rows), left)

    def of_scatter(self, cells: Numbers, none: Numbers) -> Numbers:
        """The same of what is computed from all slices, from what it is without each of them in turn.

        `cells` has that for every slice in which a group has rows, `none` for every other one.
        """
        present = self.added(np.ones(len(cells)))
        absent = self._slices - present
        mean = (self.added(cells) + absent * none) / self._slices
        apart = self.added((cells - mean[self._group]) ** 2) + absent * (none - mean) ** 2
        factor = (1 - self._share) * (self._slices - 1) / self._slices
        return self._plain(factor * apart)

    def _plain(self, variance: Numbers) -> Numbers:
        """By Student's t; one slice alone tells of no scatter."""
        if self._slices == 1:
            return np.full(self._size, np.nan)
        return student_t(np.full(self._size, self._slices - 1.0)) * np.sqrt(variance)

    def _between(self, squared: Numbers) -> Numbers:
        if self._slices == 1:
            return np.zeros(self._size)
        return (1 - self._share) * np.maximum(0.0, squared) / (self._slices - 1)

    def _scatter(self, rows: Numbers, mean: Numbers, apart: Numbers) -> float:
        """How far values of one group lie apart, squared: of all groups, or else of the groups' means."""
        freedom = (rows - 1).clip(0).sum()
        if freedom > 0:
            return float(apart.sum() / freedom)
        return float(mean.var(ddof=1)) if self._size > 1 else np.nan

    def _half(self, variance: Numbers, parts: Numbers) -> Numbers:
        largest = np.abs(parts).max(initial=0.0)
        scaled = parts / largest if largest > 0 else parts
        second, fourth = self.added(scaled**2), self.added(scaled**4)
        mattering = np.divide(second**2, fourth, out=np.ones(self._size), where=fourth > 0)
        return student_t(np.clip(mattering - 1, 1.0, max(1.0, self._slices - 1.0))) * np.sqrt(variance)


def student_t(freedom: Numbers) -> Numbers:
    """The 97.5 % quantile of Student's t for 1 degree of freedom or more."""
    z = _Z
    series = (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
    few = np.interp(freedom, np.arange(1, len(_T) + 1), _T)
    return np.where(freedom < len(_T), few, series)
