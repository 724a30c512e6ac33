"""Variances and standard deviations from partial counts, averages and squared distances from averages.

Distances are taken from a group's own average, so that large values lose nothing to rounding. Rows of the
slices that were read also represent those of other slices: each counts 256 / (slices read) times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshline.spark.answering.estimates import Groups, Numbers
from freshline.sql.slices import SLICES

# Bounds are computed for the logarithm, so both have the same ratio to the value.
_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Moments:
    """By group: the number of values, the sum of their distances from a point and of the squares."""

    count: Numbers
    first: Numbers
    second: Numbers

    def plus(self, other: Moments, weight: float) -> Moments:
        return Moments(
            self.count + weight * other.count,
            self.first + weight * other.first,
            self.second + weight * other.second,
        )

    def taken(self, group: np.ndarray) -> Moments:
        return Moments(self.count[group], self.first[group], self.second[group])

    def variance(self, kind: str, weight: float) -> Numbers:
        """The variances; NaN if there is none. One row of a sample, which counts `weight` times, has none."""
        apart = np.maximum(0.0, self.second - self.first**2 / np.where(self.count > 0, self.count, 1.0))
        if kind.endswith("pop") and weight == 1:
            return np.where(self.count > 0, apart / np.maximum(1.0, self.count), np.nan)
        freedom = self.count - weight
        found = np.where(freedom > 1e-9, apart / np.where(freedom > 1e-9, freedom, 1.0), np.nan)
        if kind.endswith("pop"):
            found = np.where(self.count > 0, found * (self.count - 1) / np.maximum(1.0, self.count), np.nan)
        return found


class Scatter:
    """`cells` are partial results of groups in slices; `known` those of rows in no slice, by group."""

    def __init__(self, groups: Groups, group: np.ndarray, cells: Moments, known: Moments) -> None:
        self._groups = groups
        self._group = group
        self._cells = cells
        self._known = known
        self._seen = Moments(*(groups.added(each) for each in (cells.count, cells.first, cells.second)))

    def values(self, kind: str, slices: int, scaled: np.ndarray) -> Numbers:
        """The values by group; `scaled` marks groups that may have rows in unread slices."""
        estimated = self._value(self._known.plus(self._seen, SLICES / slices), kind, SLICES / slices)
        exact = self._value(self._known.plus(self._seen, 1.0), kind, 1.0)
        return np.where(scaled, estimated, exact)

    def bounds(self, kind: str, slices: int, values: Numbers) -> tuple[Numbers, Numbers]:
        """95 % intervals, computed for the logarithm by leaving out one slice after the other."""
        if slices == 1:
            return np.full(len(values), np.nan), np.full(len(values), np.nan)
        weight = SLICES / (slices - 1)
        all_of = self._known.plus(self._seen, weight)
        without = all_of.taken(self._group).plus(self._cells, -weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            cells = np.log(np.maximum(_LEAST, self._value(without, kind, weight)))
            none = np.log(np.maximum(_LEAST, self._value(all_of, kind, weight)))
            half = self._groups.of_scatter(cells, none)
            return values * np.exp(-half), values * np.exp(half)

    def _value(self, moments: Moments, kind: str, weight: float) -> Numbers:
        variance = moments.variance(kind, weight)
        return np.sqrt(variance) if kind.startswith("stddev") else variance


Cells = tuple[np.ndarray, Numbers, Numbers, Numbers]  # group, count, average, squared distances from it


def scatter_of(groups: Groups, cells: Cells, known: Cells, size: int) -> Scatter:
    """The scatter from partial results of slices and of rows in no slice."""
    centre = _centres(cells, known, size)
    return Scatter(groups, cells[0], _moments(cells, centre), _by_group(known, centre, size))


def _centres(cells: Cells, known: Cells, size: int) -> Numbers:
    group, count, mean = (np.concatenate([cells[at], known[at]]) for at in range(3))
    rows = np.bincount(group, count, size)
    return np.asarray(np.bincount(group, count * mean, size) / np.maximum(1.0, rows), np.float64)


def _moments(cells: Cells, centre: Numbers) -> Moments:
    group, count, mean, squares = cells
    apart = mean - centre[group]
    return Moments(count, count * apart, squares + count * apart**2)


def _by_group(cells: Cells, centre: Numbers, size: int) -> Moments:
    found = _moments(cells, centre)
    added = [np.bincount(cells[0], each, size) for each in (found.count, found.first, found.second)]
    return Moments(*(np.asarray(each, np.float64) for each in added))
