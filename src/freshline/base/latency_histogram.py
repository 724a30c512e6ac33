"""Histogram of the age of rows at their commit; its size does not grow with the length of a run."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

_BASE: Final = math.log(1.01)  # latencies in one bucket differ by at most 1 %


class LatencyHistogram:
    """Counts of latencies in buckets of 1 %; the maximum is exact.

    >>> seen = LatencyHistogram()
    >>> seen.add(np.array([10_000, 20_000, 1_000_000]))
    >>> seen.rows, seen.max_us, 19_800 <= seen.quantile_us(0.5) <= 20_200
    (3, 1000000, True)
    """

    def __init__(self) -> None:
        self.rows = 0
        self.max_us: int | None = None
        self._counts: Counter[int] = Counter()

    def add(self, latencies_us: npt.NDArray[np.int64]) -> None:
        """Adds the latencies of rows; a row dated after its commit counts as one microsecond."""
        if not latencies_us.size:
            return
        least = np.maximum(latencies_us, 1)
        sizes, counts = np.unique(np.floor(np.log(least) / _BASE).astype(np.int64), return_counts=True)
        self._counts.update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        self.rows += latencies_us.size
        self.max_us = max(self.max_us or 0, int(least.max()))

    def quantile_us(self, share: float) -> int | None:
        """The smallest latency that this share of the rows does not exceed; None without rows."""
        if self.max_us is None:
            return None
        left = math.ceil(share * self.rows)
        for size in sorted(self._counts):
            left -= self._counts[size]
            if left <= 0:
                return min(self.max_us, math.ceil(math.exp((size + 1) * _BASE)))
        return self.max_us
