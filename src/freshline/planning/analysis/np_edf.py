"""Non-preemptive EDF on one track: the exact test, and how late a job may finish if it fails.

Both hold for jobs that come less often than their period, and for jobs started before their release with
their deadline kept. Such a job can delay another by its cost e_j only in place of its own share of the time
up to the deadline; that share is at least e_j unless p_j is the longer period.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from freshline.planning.analysis.exact import SCALE, bracketed_sum

POINTS_MAX = 1_000_000


def schedulable(
    costs: Sequence[int], periods: Sequence[int], points_max: int = POINTS_MAX, blocking: int = 0
) -> bool | None:
    """Whether no deadline is ever missed, whatever the phases (Jeffay, Stanat and Martel 1991).

    The condition is U ≤ 1 and L ≥ e_i + Σ_{p_j < p_i} (⌈L/p_j⌉ − 1)·e_j for every task i and every L in
    (p_min, p_i). Time is dense here; the printed ⌊(L−1)/p_j⌋ is for releases at integers only. The right side
    rises just after the multiples t of the periods, so only those count, with ⌊t/p_j⌋. As that is 0 for
    p_j > t, all tasks may be summed, and one pass serves every i:

        t − Σ_j ⌊t/p_j⌋·e_j ≥ max{e_i : p_i > t}   for every multiple t, p_min ≤ t < p_max.

    A batch may block for `blocking`, whatever t is (docs/batches.md): the right side is never below it.

    `None`: not decided within `points_max` multiples.

    >>> schedulable([1, 2], [2, 6])
    False
    """
    spare = spare_time(costs, periods, points_max, blocking)
    return None if spare is None else spare >= blocking


def spare_time(
    costs: Sequence[int], periods: Sequence[int], points_max: int = POINTS_MAX, enough: int | None = None
) -> int | None:
    """How long a batch may block without a missed deadline; −1 if one may be missed without any.

    It is the least t − Σ_j ⌊t/p_j⌋·e_j over all multiples t of the periods, including those above p_max. A
    result of at least `enough` may be too small. `None`: not decided within `points_max`.

    >>> spare_time([4, 1, 1], [6, 7, 8])
    2
    """
    utilization = bracketed_sum(costs, periods)
    if not utilization.at_most(1):
        return -1
    idle = SCALE - utilization.high
    # The shortest periods come last: those up to t are popped as t grows.
    blockers = _largest_cost_by_period_above(costs, periods)
    # The next multiple of each period, the period, and the cost of all its tasks together.
    multiples = [(period, period, cost) for period, cost in _total_cost_by_period(costs, periods).items()]
    heapify(multiples)
    demand, least = 0, min(periods)
    for _ in range(points_max):
        t, period, cost = multiples[0]
        while blockers and blockers[-1][0] <= t:
            blockers.pop()
        # From here on t − demand ≥ t·(1 − U), as t only grows and the blocking only shrinks.
        needed = least if enough is None else min(least, enough)
        needed = max(needed, blockers[-1][1]) if blockers else needed
        if needed == 0 or t * idle >= needed * SCALE:
            return least
        demand += cost
        heapreplace(multiples, (t + period, period, cost))
        if multiples[0][0] > t:
            if blockers and t - demand < blockers[-1][1]:
                return -1
            least = min(least, t - demand)
            if not blockers and least == 0:
                return 0
    return None


def blocking_tardiness(costs: Sequence[int], periods: Sequence[int], blocking: int = 0) -> list[int] | None:
    """Tardiness of at most max{e_j : p_j > p_i}, or `blocking`, for every task; `None` if U > 1.

    Before a late job the track has been busy since some t. It ran jobs due no later and released since t,
    which demand at most U·(d − t). It also ran the rest of at most one job due later: released before t, with
    a period longer than d − t and so than p_i (the blocking of Jeffay, Stanat and Martel 1991).

    >>> blocking_tardiness([1, 2], [2, 6])
    [2, 0]
    """
    if not bracketed_sum(costs, periods).at_most(1):
        return None
    longer: dict[int, int] = {}
    largest = blocking
    for period, cost in reversed(_largest_cost_by_period(costs, periods)):
        longer[period] = largest
        largest = max(largest, cost)
    return [longer[period] for period in periods]


def _total_cost_by_period(costs: Sequence[int], periods: Sequence[int]) -> dict[int, int]:
    total: dict[int, int] = {}
    for cost, period in zip(costs, periods, strict=True):
        total[period] = total.get(period, 0) + cost
    return total


def _largest_cost_by_period(costs: Sequence[int], periods: Sequence[int]) -> list[tuple[int, int]]:
    largest: dict[int, int] = {}
    for cost, period in zip(costs, periods, strict=True):
        largest[period] = max(cost, largest.get(period, 0))
    return sorted(largest.items())


def _largest_cost_by_period_above(costs: Sequence[int], periods: Sequence[int]) -> list[tuple[int, int]]:
    """(p, max{e : its period ≥ p}) for each period p, the longest first."""
    above: list[tuple[int, int]] = []
    for period, cost in reversed(_largest_cost_by_period(costs, periods)):
        above.append((period, max(cost, above[-1][1]) if above else cost))
    return above
