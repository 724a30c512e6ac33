"""The rows of simulated steps: how many each reads, and how old they are when they come out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import exp, log
from typing import Final, NamedTuple

# A hundredth more in each: so exact are quantiles, whatever is counted.
_STEP: Final = log(1.01)
# Rows that are spread over a while are counted as so many, in the middle of equal parts.
_POINTS: Final = 8


class RowBatch(NamedTuple):
    """So many rows, made evenly between two instants; at one instant if these are the same."""

    since: int
    until: int
    number: float

    def within(self, after: int, until: int) -> RowBatch | None:
        """Those of (after, until]."""
        if self.since == self.until:
            return self if after < self.until <= until else None
        low, high = max(self.since, after), min(self.until, until)
        if low >= high:
            return None
        return RowBatch(low, high, self.number * (high - low) / (self.until - self.since))

    def times(self, selectivity: float) -> RowBatch:
        return self._replace(number=self.number * selectivity)


class TableRows:
    """What a step has made, as long as somebody may read it."""

    def __init__(self) -> None:
        self._made: deque[RowBatch] = deque()

    def add(self, rows: Iterable[RowBatch]) -> None:
        self._made.extend(rows)

    def within(self, after: int, until: int) -> Iterator[RowBatch]:
        for rows in self._made:
            found = rows.within(after, until)
            if found is not None:
                yield found

    def forget(self, until: int) -> None:
        """Nobody reads what is no newer than that any more."""
        while self._made and self._made[0].until <= until:
            self._made.popleft()


class OutputLatencies:
    """How old rows were when they came out, and how many were too old. Memory does not grow."""

    def __init__(self, deadline_us: int) -> None:
        self._deadline_us = deadline_us
        self._counts: dict[int, float] = {}
        self.rows = 0.0
        self.misses = 0.0
        self.max_us: int | None = None

    def came_out(self, now: int, rows: RowBatch) -> None:
        if not rows.number:
            return
        self.rows += rows.number
        self.max_us = max(self.max_us or 0, now - rows.since)
        points = 1 if rows.since == rows.until else _POINTS
        share = rows.number / points
        for point in range(points):
            age_us = now - (rows.since + (rows.until - rows.since) * (2 * point + 1) // (2 * points))
            bucket = round(log(max(1, age_us)) / _STEP)
            self._counts[bucket] = self._counts.get(bucket, 0.0) + share
        late = rows.within(rows.since - 1, now - self._deadline_us - 1)
        if late is not None:
            self.misses += late.number

    def quantile_us(self, share: float) -> int | None:
        """The age that so many rows do not exceed, to a hundredth of it."""
        passed = 0.0
        for bucket, count in sorted(self._counts.items()):
            passed += count
            if passed >= self.rows * share * (1 - 1e-9):
                return min(round(exp(bucket * _STEP)), self.max_us or 0)
        return None
