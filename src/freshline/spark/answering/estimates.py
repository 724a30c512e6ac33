"""95 % intervals of an answer from some of the slices, computed from the scatter between slices.

Slices are a sample without replacement of 256. A total is scaled, an average is a ratio of two totals. The
variance of both is that between slices, less the share that was read. The variance of a variance comes from
leaving out one slice after the other (the jackknife). Student's t has one degree of freedom less than the
number of slices read.

By itself such an interval is too narrow for a group with few rows, or if few rows make up most of the group.
A request's answer marks these values. A continuous query's answer does not: its intervals are at least as
wide as for rows sampled one by one, with a few average rows added to each group. Its t has as many degrees of
freedom as there are slices that matter for the group, not as were read.
"""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from freshline.sql.slices import SLICES

Numbers = npt.NDArray[np.float64]
# The number of average rows that are added to each group: for a total, and for the scatter of an average.
_LENT: Final = 2.0
_LENT_SCATTER: Final = 1.0
# Student's t, 97.5 %, by degrees of freedom. Its logarithm is close to a polynomial in 1/freedom: the one
# through these values is within 0.05 % from 1 degree of freedom on.
_T: Final = {
    1: 12.7062047,
    2: 4.3026527,
    3: 3.1824463,
    4: 2.7764451,
    6: 2.4469118,
    10: 2.2281389,
    inf: 1.9599640,
}
_LOG_T: Final = np.polynomial.Polynomial.fit([1 / each for each in _T], np.log([*_T.values()]), len(_T) - 1)


class Groups:
    """Partial results, one for each group in each slice; `group` has the group number of each, below `size`.

    The results of rows in no slice are exact: methods take them as arguments where they matter.
    """

    def __init__(self, group: npt.NDArray[np.int64], size: int, slices: int, lends: bool = True) -> None:
        self._group = group
        self._size = size
        self._slices = slices  # the number read
        self._share = slices / SLICES
        self._lends = lends  # whether intervals must hold for groups with few rows too

    def added(self, values: Numbers) -> Numbers:
        """The sums by group."""
        return np.asarray(np.bincount(self._group, weights=values, minlength=self._size), np.float64)

    def of_total(self, totals: Numbers, counts: Numbers, squares: Numbers) -> Numbers:
        """By group, half the length of the interval of a scaled total.

        `totals` are partial totals, with the `counts` of their values and the sums of the values' `squares`.
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
        """By group, half the length of the interval of an average; NaN if the scatter is not known.

        `known` are totals and counts of rows in no slice.
        """
        rows, seen = self.added(counts), self.added(totals)
        all_rows = known[1] + rows / self._share
        mean = (known[0] + seen / self._share) / np.where(all_rows > 0, all_rows, 1.0)
        left = totals - mean[self._group] * counts
        apart = self.added(left**2) - self.added(left) ** 2 / self._slices
        # The average is one of all rows, scaled.
        size = np.maximum(1.0, all_rows * self._share)
        between = self._between(apart) * self._slices / size**2
        if not self._lends:
            return self._plain(between)
        apart = np.maximum(0.0, self.added(squares) - 2 * mean * seen + mean**2 * rows)
        scatter = self._scatter(rows, mean, apart)
        by_rows = (1 - self._share) * (apart + _LENT_SCATTER * scatter) / size**2
        return self._half(np.maximum(between, by_rows), left)

    def of_scatter(self, cells: Numbers, none: Numbers) -> Numbers:
        """By group, half the length of the interval of a value, from its values without each slice in turn.

        `cells` has these for every slice in which a group has rows, `none` for all other slices.
        """
        present = self.added(np.ones(len(cells)))
        absent = self._slices - present
        mean = (self.added(cells) + absent * none) / self._slices
        apart = self.added((cells - mean[self._group]) ** 2) + absent * (none - mean) ** 2
        factor = (1 - self._share) * (self._slices - 1) / self._slices
        return self._plain(factor * apart)

    def _plain(self, variance: Numbers) -> Numbers:
        """The interval by Student's t; a single slice has no scatter."""
        if self._slices == 1:
            return np.full(self._size, np.nan)
        return student_t(np.full(self._size, self._slices - 1.0)) * np.sqrt(variance)

    def _between(self, squared: Numbers) -> Numbers:
        if self._slices == 1:
            return np.zeros(self._size)
        return (1 - self._share) * np.maximum(0.0, squared) / (self._slices - 1)

    def _scatter(self, rows: Numbers, mean: Numbers, apart: Numbers) -> float:
        """The variance within a group over all groups; if that is not known, the variance of their means."""
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
    return np.asarray(np.exp(_LOG_T(1 / freedom)), np.float64)
