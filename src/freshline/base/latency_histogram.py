"""Histogram of the age of rows at their commit; its size does not grow with the length of a run."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, floor, log
from typing import Final

import numpy as np
import numpy.typing as npt

_STEP: Final = log(1.01)  # the width of a bucket, and the precision of quantiles


class LatencyHistogram:
    """Counts of latencies in buckets of 1 %; the maximum is exact.

    A quantile is the upper end of its bucket. With `centred` it is the middle, for rows that are spread over
    points: each point then stands for rows on both sides of it.

    >>> seen = LatencyHistogram()
    >>> seen.add(np.array([10_000, 20_000, 1_000_000]))
    >>> seen.rows, seen.max_us, 19_800 <= seen.quantile_us(0.5) <= 20_200
    (3, 1000000, True)
    """

    def __init__(self, centred: bool = False) -> None:
        self.rows: float = 0  # a simulation may count fractions of rows
        self._shift = 0.5 if centred else 0.0  # shift of the edges, in buckets
        self.max_us: int | None = None
        self._counts: dict[int, float] = {}

    def add_spread(self, latencies_us: Sequence[int], rows: float, oldest_us: int) -> None:
        """Adds rows that are spread evenly over these latencies, and the age of the oldest row."""
        for latency_us in latencies_us:
            self._count(floor(log(max(1, latency_us)) / _STEP + self._shift), rows / len(latencies_us))
        self.rows += rows
        self.max_us = max(self.max_us or 0, oldest_us)

    def add(self, latencies_us: npt.NDArray[np.int64]) -> None:
        """Adds the latencies of rows; a row dated after its commit counts as one microsecond."""
        if not latencies_us.size:
            return
        least = np.maximum(latencies_us, 1)
        sizes, counts = np.unique(np.floor(np.log(least) / _STEP + self._shift), return_counts=True)
        for size, rows in zip(sizes.tolist(), counts.tolist(), strict=True):
            self._count(int(size), rows)
        self.rows += latencies_us.size
        self.max_us = max(self.max_us or 0, int(least.max()))

    def quantile_us(self, share: float) -> int | None:
        """The latency that this share of the rows does not exceed, to within 1 %; None without rows."""
        passed = 0.0
        for size, rows in sorted(self._counts.items()):
            passed += rows
            if passed >= self.rows * share * (1 - 1e-9):
                found = round(exp(size * _STEP)) if self._shift else ceil(exp((size + 1) * _STEP))
                return min(found, self.max_us or 0)
        return None

    def _count(self, size: int, rows: float) -> None:
        self._counts[size] = self._counts.get(size, 0) + rows
