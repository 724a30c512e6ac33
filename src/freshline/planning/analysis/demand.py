"""What continuous queries ask for at the points of a level, and how it is cut.

Queries come in by priority, each with its full cost. Shares are floats, for they only say who is cut first;
what is cut is whole microseconds, rounded up until the level holds, so that the exact test passes afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

from freshline.planning.analysis.levels import QueryLoad


class Demand(Protocol):
    """What the rules of shedding ask of the queries down to a level. Points are numbered by time."""

    steps: Sequence[int]  # the levels to look at, in turn
    lost: float  # the weighted error by all that was cut, up to a common factor

    def restart(self) -> None:
        """Puts all out again, at their full costs."""
        ...

    def enter(self, level: int) -> Sequence[int]:
        """Lets the queries down to a level in: the overrun Φ at each of its points, at its deadline last."""
        ...

    def cut_in_proportion(self, level: int, point: int, overrun_us: int) -> bool:
        """Takes an overrun from all in inverse proportion to s·g; False where they have not got so much."""
        ...

    def cut_cheapest(self, level: int, overruns_us: Sequence[int]) -> bool:
        """Takes the overrun at the point of least error from whoever loses least; False if none has room."""
        ...

    def cut_to_least(self, level: int) -> None:
        """Leaves all down to a level their least costs."""
        ...

    def costs_us(self) -> list[int]:
        """What is left, by priority."""
        ...


def loss_us(load: QueryLoad) -> float:
    """The weighted error that a microsecond less costs, up to a common factor."""
    variable_us = load.cost_us - load.fixed_us
    if variable_us <= 0:
        return inf
    # One division of integers: floats of fractions, one by one, would take most of a rescheduling's time.
    weight, selectivity, tuples = load.weight, load.selectivity, load.tuples
    above = weight.numerator * selectivity.numerator * tuples.numerator
    below = weight.denominator * selectivity.denominator * tuples.denominator
    return above / (below * variable_us * load.period_us)


def reduction_ratio(load: QueryLoad) -> float:
    """r = 1/(s·g), in whose proportion the paper cuts."""
    weight, selectivity = load.weight, load.selectivity
    return weight.denominator * selectivity.denominator / (weight.numerator * selectivity.numerator)
