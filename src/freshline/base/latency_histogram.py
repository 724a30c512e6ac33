"""How old rows were when they were committed: a distribution that takes no more room the longer a run is."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, floor, log
from typing import Final

import numpy as np
import numpy.typing as npt

_STEP: Final = log(1.01)  # from one bucket to the next: so exact are quantiles


class LatencyHistogram:
    """Counts of latencies by their size, to a hundredth; the greatest as it is.

    A quantile is the end of its bucket, which no row of it exceeds. With `centred` it is the middle: for
    rows that are spread over points, where each point stands for rows on both sides of it.

    >>> seen = LatencyHistogram()
    >>> seen.add(np.array([10_000, 20_000, 1_000_000]))
    >>> seen.rows, seen.max_us, 19_800 <= seen.quantile_us(0.5) <= 20_200
    (3, 1000000, True)
    """

    def __init__(self, centred: bool = False) -> None:
        self.rows: float = 0  # a simulated row may be a part of one
        self._shift = 0.5 if centred else 0.0  # of the buckets' edges, in buckets
        self.max_us: int | None = None
        self._counts: dict[int, float] = {}

    def add_spread(self, latencies_us: Sequence[int], rows: float, oldest_us: int) -> None:
        """So many rows, spread evenly over these latencies, and how old the oldest is."""
        for latency_us in latencies_us:
            self._count(floor(log(max(1, latency_us)) / _STEP + self._shift), rows / len(latencies_us))
        self.rows += rows
        self.max_us = max(self.max_us or 0, oldest_us)

    def add(self, latencies_us: npt.NDArray[np.int64]) -> None:
        """A row of each latency; one that is dated ahead of its commit counts as 1 µs."""
        if not latencies_us.size:
            return
        least = np.maximum(latencies_us, 1)
        sizes, counts = np.unique(np.floor(np.log(least) / _STEP + self._shift), return_counts=True)
        for size, rows in zip(sizes.tolist(), counts.tolist(), strict=True):
            self._count(int(size), rows)
        self.rows += latencies_us.size
        self.max_us = max(self.max_us or 0, int(least.max()))

    def quantile_us(self, share: float) -> int | None:
        """The latency that so many of the rows do not exceed, to a hundredth of it; None of no row."""
        passed = 0.0
        for size, rows in sorted(self._counts.items()):
            passed += rows
            if passed >= self.rows * share * (1 - 1e-9):
                found = round(exp(size * _STEP)) if self._shift else ceil(exp((size + 1) * _STEP))
                return min(found, self.max_us or 0)
        return None

    def _count(self, size: int, rows: float) -> None:
        self._counts[size] = self._counts.get(size, 0) + rows
