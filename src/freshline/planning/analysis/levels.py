"""Whether continuous queries on one track meet their deadlines: the exact test by levels of priority.

Priorities are fixed: the shorter deadline first, ties by the order of definition. A query can be paused only
between parts, so a level waits for the longest part of a query below it. Deadlines are at most the periods,
so the first iteration after the critical instant is the worst one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from freshline.planning.analysis.exact import SCALE, ceiling_of, scaled_quotients
from freshline.planning.analysis.rate_monotonic import QUOTIENTS_MAX


class QueryLoad(NamedTuple):
    """One query as the analysis sees it. A list of them is in the order of definition."""

    name: str
    period_us: int  # the stride
    deadline_us: int  # at most the period
    cost_us: int  # E = F(1), of the whole window
    fixed_us: int  # a, the fixed part of the cost
    least_us: int  # A = max(1, F(keep_least))
    part_us: int  # the longest part, which cannot be paused
    weight: Fraction
    selectivity: Fraction  # output over tuples, at least 0.001
    tuples: Fraction | int  # w, in its windows


def by_priority(loads: Sequence[QueryLoad]) -> list[int]:
    """The places of the queries, the highest priority first."""
    return sorted(range(len(loads)), key=lambda place: loads[place].deadline_us)


def blocking_us(ordered: Sequence[QueryLoad]) -> list[int]:
    """By level, the longest part of a query below it."""
    parts = accumulate((load.part_us for load in reversed(ordered[1:])), max, initial=0)
    return list(parts)[::-1]


def is_schedulable(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None = None) -> bool:
    """Whether every query meets every deadline, at its full cost or at the given costs."""
    return first_late(loads, costs_us) is None


def first_late(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None = None) -> int | None:
    """The place of the query of highest priority that may miss its deadline; None if there is none.

    >>> one = QueryLoad("one", 4, 4, 2, 0, 1, 0, Fraction(1), Fraction(1), 1)
    >>> first_late([one, one._replace(period_us=5, deadline_us=5)])
    """
    return next(_late(loads, costs_us), None)


def last_late(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None = None) -> int | None:
    """The place of the query of lowest priority that may miss its deadline; None if there is none."""
    last = deque(_late(loads, costs_us), maxlen=1)
    return last[0] if last else None


def _late(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None) -> Iterator[int]:
    order = by_priority(loads)
    for place, response in zip(order, _responses(loads, order, costs_us), strict=True):
        if response is None or response > loads[place].deadline_us:
            yield place


def response_us(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None = None) -> list[int | None]:
    """The worst response time of each query; None if it is above the period, or takes too long to compute.

    It is the least t = B_i + E_i + Σ_{j above i} ⌈t/P_j⌉·E_j, counted from the critical instant.
    """
    order = by_priority(loads)
    responses: list[int | None] = [None] * len(loads)
    for place, response in zip(order, _responses(loads, order, costs_us), strict=True):
        responses[place] = response
    return responses


def holds(loads: Sequence[QueryLoad], place: int, costs_us: Sequence[int]) -> bool:
    """Whether one query meets its deadlines, whatever happens to the others."""
    own = loads[place].deadline_us, place
    above = [other for other, load in enumerate(loads) if (load.deadline_us, other) < own]
    below = [load.part_us for other, load in enumerate(loads) if (load.deadline_us, other) > own]
    costs, periods = [costs_us[other] for other in above], [loads[other].period_us for other in above]
    waited = max(below, default=0) + costs_us[place]
    left = SCALE - sum(scaled_quotients(costs, periods))
    if left <= 0:
        return False
    start = ceiling_of(waited * SCALE, left)
    return _least_fixed_point(start, waited, costs, periods, loads[place].deadline_us) is not None


def _responses(
    loads: Sequence[QueryLoad], order: Sequence[int], costs_us: Sequence[int] | None
) -> Iterator[int | None]:
    """The response times by level."""
    ordered = [loads[place] for place in order]
    costs = [load.cost_us for load in ordered] if costs_us is None else [costs_us[place] for place in order]
    periods = [load.period_us for load in ordered]
    blocking = blocking_us(ordered)
    scaled = [0, *accumulate(scaled_quotients(costs, periods))]
    known, of_others = 0, 0
    for level, period_us in enumerate(periods):
        own = blocking[level] + costs[level]
        response = None
        if scaled[level] < SCALE:
            # Two lower bounds save nearly all steps: t ≥ own + U_above·t; and the response of a level above,
            # if that had no more blocking, plus the additional wait.
            start = ceiling_of(own * SCALE, SCALE - scaled[level])
            if own >= of_others:
                start = max(start, known + own - of_others)
            response = _least_fixed_point(start, own, costs[:level], periods[:level], period_us)
        if response is not None:
            known, of_others = response, blocking[level]
        yield response


def _least_fixed_point(
    start: int, own: int, costs: Sequence[int], periods: Sequence[int], most: int
) -> int | None:
    """The least t ≥ start with t = own + Σ ⌈t/P_j⌉·E_j; None if it is above `most`."""
    above = list(zip(costs, periods, strict=True))
    response, demand = 0, start
    for _ in range(2 + QUOTIENTS_MAX // (1 + len(above))):
        if not response < demand <= most:
            return response if demand <= most else None
        response = demand
        demand = own + sum([-(-response // period) * cost for cost, period in above])
    return None
