"""The demand of continuous queries at the points of a level, and how it is cut.

Queries enter by priority, each with its full cost. Shares are floats, for they only decide which query is cut
first. Cuts are whole microseconds, rounded up until the level holds, so the exact test passes afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

from freshline.planning.analysis.levels import QueryLoad


class Demand(Protocol):
    """The demand of the queries down to a level, for the rules of shedding. Points are numbered by time."""

    steps: Sequence[int]  # the levels to examine, in turn
    lost: float  # the weighted error of all cuts, up to a common factor

    def restart(self) -> None:
        """Removes all queries, and restores their full costs."""
        ...

    def enter(self, level: int) -> Sequence[int]:
        """Adds the queries down to a level: the overrun Φ at each of its points, at its deadline last."""
        ...

    def cut_in_proportion(self, level: int, point: int, overrun_us: int) -> bool:
        """Cuts an overrun from all queries in inverse proportion to s·g; False if they lack the room."""
        ...

    def cut_cheapest(self, level: int, overruns_us: Sequence[int]) -> bool:
        """Cuts the overrun, at the point of least error, from queries that lose least; False without room."""
        ...

    def cut_to_least(self, level: int) -> None:
        """Cuts all queries down to a level to their least costs."""
        ...

    def costs_us(self) -> list[int]:
        """The remaining costs, by priority."""
        ...


def loss_us(load: QueryLoad) -> float:
    """The weighted error of cutting one microsecond, up to a common factor."""
    variable_us = load.cost_us - load.fixed_us
    if variable_us <= 0:
        return inf
    # One division of integers: conversions of single fractions would take most of a rescheduling's time.
    weight, selectivity, tuples = load.weight, load.selectivity, load.tuples
    above = weight.numerator * selectivity.numerator * tuples.numerator
    below = weight.denominator * selectivity.denominator * tuples.denominator
    return above / (below * variable_us * load.period_us)


def reduction_ratio(load: QueryLoad) -> float:
    """r = 1/(s·g), the ratio by which the paper cuts."""
    weight, selectivity = load.weight, load.selectivity
    return weight.denominator * selectivity.denominator / (weight.numerator * selectivity.numerator)
