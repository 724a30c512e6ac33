"""The rows of simulated steps: how many each step reads, and the age of rows at an output."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from freshline.base.latency_histogram import LatencyHistogram

# A placement's sub-deadlines are within this share of the exact ones.
_TOLERANCE: Final = 2e-6
# Rows over a span count as this many points, in the middle of equal parts.
_POINTS: Final = 8


class RowBatch(NamedTuple):
    """Rows made evenly between two instants; at one instant if these are the same."""

    since: int
    until: int
    number: float

    def within(self, after: int, until: int) -> RowBatch | None:
        """The rows of (after, until]."""
        if self.since == self.until:
            return self if after < self.until <= until else None
        low, high = max(self.since, after), min(self.until, until)
        if low >= high:
            return None
        return RowBatch(low, high, self.number * (high - low) / (self.until - self.since))

    def times(self, selectivity: float) -> RowBatch:
        return self._replace(number=self.number * selectivity)


class TableRows:
    """The rows that a step has made, as long as another step may read them."""

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
        """Drops the rows up to then, which no step reads any more."""
        while self._made and self._made[0].until <= until:
            self._made.popleft()


class OutputRows:
    """The age of an output's rows when they come out, and how many were too old."""

    def __init__(self, deadline_us: int) -> None:
        self.latencies = LatencyHistogram(centred=True)
        self.misses = 0.0
        self._deadline_us = deadline_us

    def came_out(self, now: int, rows: RowBatch) -> None:
        if not rows.number:
            return
        points = 1 if rows.since == rows.until else _POINTS
        length_us = rows.until - rows.since
        made = [rows.since + length_us * (2 * point + 1) // (2 * points) for point in range(points)]
        self.latencies.add_spread([now - at for at in made], rows.number, now - rows.since)
        late = rows.within(rows.since - 1, now - self._deadline_us - 1)
        if late is not None:
            self.misses += late.number

    def is_late(self, now: int, rows: RowBatch) -> bool:
        """Whether some of the rows are too old now, by more than a placement's rounding."""
        return bool(rows.number) and now - rows.since > self._deadline_us * (1 + _TOLERANCE)
