"""Random sets of continuous queries that ask for more than a track has, and Table 2 of paper 000."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from freshline.analysis.levels import Load
from freshline.analysis.operators import operator_cost
from freshline.definitions.duration import SECOND
from freshline.definitions.operators import Aggregate, Join, Operator, Project, Select, Stream

STRIDES_US: Final = tuple(tenths * SECOND // 10 for tenths in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20))

_HALF: Final = Fraction(1, 2)
_SELECT: Final = Select(_HALF, Stream("s1"))
_TWO: Final = Join(_HALF, Stream("s1"), Stream("s2"))
# Operators, stride in seconds, weight. Selectivities are not in print; half is chosen.
TABLE_2: Final[tuple[tuple[Operator, int, int], ...]] = (
    (_SELECT, 1, 5),
    (_SELECT, 2, 6),
    (Project(_SELECT), 2, 3),
    (Project(_SELECT), 3, 2),
    (_TWO, 4, 1),
    (_TWO, 5, 7),
    (Join(_HALF, _TWO, Stream("s3")), 5, 8),
    (Project(_TWO), 6, 9),
    (Join(_HALF, Project(Stream("s1")), Project(Stream("s2"))), 6, 10),
    (Aggregate(Stream("s1")), 6, 4),
)


def table_2(rate: int) -> list[Load]:
    """Its queries over streams of so many tuples a second, each window as long as its stride."""
    loads = []
    for number, (operators, stride, weight) in enumerate(TABLE_2, start=1):
        cost = operator_cost(operators, dict.fromkeys(("s1", "s2", "s3"), rate * stride))
        stride_us, least_us = stride * SECOND, max(1, cost.fixed_us)
        times = stride_us, stride_us, cost.cost_us, cost.fixed_us, least_us, 0
        loads.append(Load(f"Q{number}", *times, Fraction(weight), cost.selectivity, cost.tuples))
    return loads


def overloaded(
    rng: random.Random,
    queries: int | None = None,
    strides_us: Sequence[int] = STRIDES_US,
    utilization: float | None = None,
) -> list[Load]:
    """3 to 10 queries that ask for 1.05 to 2.5 tracks, all that they cost being for their tuples."""
    count = rng.randint(3, 10) if queries is None else queries
    asked = rng.uniform(1.05, 2.5) if utilization is None else utilization
    loads = []
    for number, share in enumerate(uunifast(rng, count, asked)):
        stride_us = rng.choice(strides_us)
        tuples = max(1, round(share * stride_us / rng.uniform(4, 30)))
        cost_us = max(1, round(share * stride_us))
        weight, selectivity = Fraction(rng.randint(1, 10)), Fraction(rng.randint(50, 1_000), 1_000)
        loads.append(Load(f"q{number}", stride_us, stride_us, cost_us, 0, 1, 0, weight, selectivity, tuples))
    return loads


def uunifast(rng: random.Random, count: int, total: float) -> list[float]:
    """So many shares of a total, drawn evenly from all there are (Bini and Buttazzo 2005)."""
    shares = []
    for left in range(count - 1, 0, -1):
        rest = total * rng.random() ** (1 / left)
        shares.append(total - rest)
        total = rest
    return [*shares, total]
