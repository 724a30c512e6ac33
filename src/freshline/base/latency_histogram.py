"""How old rows were when they were committed: a distribution that takes no more room the longer a run is."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

_BASE: Final = math.log(1.01)  # what falls together differs by a hundredth at most


class LatencyHistogram:
    """Counts of latencies by their size, to a hundredth; the greatest as it is.

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
        """Rows that are as old as that; one dated ahead of its commit is not older than nothing."""
        if not latencies_us.size:
            return
        least = np.maximum(latencies_us, 1)
        sizes, counts = np.unique(np.floor(np.log(least) / _BASE).astype(np.int64), return_counts=True)
        self._counts.update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        self.rows += latencies_us.size
        self.max_us = max(self.max_us or 0, int(least.max()))

    def quantile_us(self, share: float) -> int | None:
        """The least latency that so many of the rows do not exceed; None of no row."""
        if self.max_us is None:
            return None
        left = math.ceil(share * self.rows)
        for size in sorted(self._counts):
            left -= self._counts[size]
            if left <= 0:
                return min(self.max_us, math.ceil(math.exp((size + 1) * _BASE)))
        return self.max_us
