"""Whether continuous queries on one track meet their deadlines: the exact test by levels of priority.

Priorities are fixed: the shorter deadline first, ties by the order of definition. A query can be put aside
only between parts, so that a level waits for the longest part of a query below it. Deadlines are at most the
periods, so that the first iteration after the critical instant is the worst one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from freshline.analysis.exact import SCALE, ceiling_of, scaled_quotients


class Load(NamedTuple):
    """One query as the analysis sees it. A list of them is in the order of definition."""

    name: str
    period_us: int  # the stride
    deadline_us: int  # at most the period
    cost_us: int  # E = F(1), of the whole window
    fixed_us: int  # a, what the cost does not fall below
    least_us: int  # A = max(1, F(keep_least))
    part_us: int  # the longest stretch that cannot be put aside
    weight: Fraction
    selectivity: Fraction  # output over tuples, at least 0.001
    tuples: Fraction | int  # w, in its windows


def by_priority(loads: Sequence[Load]) -> list[int]:
    """The places of the queries, the highest priority first."""
    return sorted(range(len(loads)), key=lambda place: loads[place].deadline_us)


def blocking_us(ordered: Sequence[Load]) -> list[int]:
    """By level, the longest part of a query below it."""
    parts = accumulate((load.part_us for load in reversed(ordered[1:])), max, initial=0)
    return list(parts)[::-1]


def is_schedulable(loads: Sequence[Load], costs_us: Sequence[int] | None = None) -> bool:
    """Whether every query meets every deadline, at its full cost or at the given costs."""
    responses = response_us(loads, costs_us)
    return all(
        response is not None and response <= load.deadline_us
        for response, load in zip(responses, loads, strict=True)
    )


def response_us(loads: Sequence[Load], costs_us: Sequence[int] | None = None) -> list[int | None]:
    """The worst response time of each query, or None where it is above the period.

    It is the least t = B_i + E_i + Σ_{j above i} ⌈t/P_j⌉·E_j, counted from the critical instant.
    """
    costs_us = [load.cost_us for load in loads] if costs_us is None else costs_us
    order = by_priority(loads)
    costs = [costs_us[place] for place in order]
    periods = [loads[place].period_us for place in order]
    blocking = blocking_us([loads[place] for place in order])
    scaled = [0, *accumulate(scaled_quotients(costs, periods))]
    responses: list[int | None] = [None] * len(loads)
    for level, place in enumerate(order):
        own = blocking[level] + costs[level]
        if scaled[level] < SCALE:
            above = list(zip(costs[:level], periods[:level], strict=True))
            # t ≥ own + U_above·t: starting there saves nearly all steps where U is close to 1.
            start = ceiling_of(own * SCALE, SCALE - scaled[level])
            responses[place] = _least_fixed_point(start, own, above, periods[level])
    return responses


def _least_fixed_point(start: int, own: int, above: Sequence[tuple[int, int]], period_us: int) -> int | None:
    response, demand = 0, start
    while response < demand <= period_us:
        response = demand
        demand = own + sum([-(-response // period) * cost for cost, period in above])
    return response if demand <= period_us else None
