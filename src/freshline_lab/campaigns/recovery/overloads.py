"""Random sets of continuous queries that overload a track."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from freshline.base.duration import SECOND
from freshline.planning.analysis.levels import QueryLoad

STRIDES_US: Final = tuple(tenths * SECOND // 10 for tenths in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20))


def overloaded(
    rng: random.Random,
    queries: int | None = None,
    strides_us: Sequence[int] = STRIDES_US,
    utilization: float | None = None,
) -> list[QueryLoad]:
    """3 to 10 queries with a demand of 1.05 to 2.5 tracks, and no fixed costs."""
    count = rng.randint(3, 10) if queries is None else queries
    asked = rng.uniform(1.05, 2.5) if utilization is None else utilization
    loads = []
    for number, share in enumerate(uunifast(rng, count, asked)):
        stride_us = rng.choice(strides_us)
        tuples = max(1, round(share * stride_us / rng.uniform(4, 30)))
        cost_us = max(1, round(share * stride_us))
        weight, selectivity = Fraction(rng.randint(1, 10)), Fraction(rng.randint(50, 1_000), 1_000)
        loads.append(
            QueryLoad(f"q{number}", stride_us, stride_us, cost_us, 0, 1, 0, weight, selectivity, tuples)
        )
    return loads


def uunifast(rng: random.Random, count: int, total: float) -> list[float]:
    """Random shares of a total, uniformly distributed (Bini and Buttazzo 2005)."""
    shares = []
    for left in range(count - 1, 0, -1):
        rest = total * rng.random() ** (1 / left)
        shares.append(total - rest)
        total = rest
    return [*shares, total]
