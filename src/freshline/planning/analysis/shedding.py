"""How much each continuous query gives up so that all meet their deadlines (paper 000, section 3.2.2).

Levels are examined by priority. A level that fails has an overrun Φ at each of its points, which is cut from
the queries of its priority and above. The rules differ in the point and in the queries that they cut:

- `paper`: at the deadline, from all in inverse proportion to selectivity and weight, as printed but applied
  to all of them, and to none below its least cost;
- `least-overrun`: the same at the point of the least overrun;
- `least-error`: from the queries that lose least for the time freed, at the point of least error; in the end
  the better of this and `paper`.

Shares are floats, for they only decide which query is cut first. Cuts are whole microseconds, rounded up
until the level holds, so the exact test passes afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from operator import mul
from typing import Final, Literal

from freshline.base.duration import SECOND
from freshline.planning.analysis.demand import Demand
from freshline.planning.analysis.demand_of_few import DemandOfFew, stretch_of_few
from freshline.planning.analysis.demand_of_many import DemandOfMany, stretch_of_many
from freshline.planning.analysis.levels import QueryLoad, by_priority, is_schedulable

Rule = Literal["paper", "least-overrun", "least-error"]

_FEW: Final = 24
_INT64: Final = 1 << 62
# Two errors as floats that are closer than this are compared exactly.
_DOUBT: Final = 1e-9


def keep(load: QueryLoad, cost_us: int) -> Fraction:
    """The share of its window that a query reads within a cost; below 0 if that is below the fixed part."""
    if cost_us >= load.cost_us:
        return Fraction(1)
    return Fraction(cost_us - load.fixed_us, load.cost_us - load.fixed_us)


def weighted_error(loads: Sequence[QueryLoad], costs_us: Sequence[int]) -> Fraction:
    """Σ g·s·ŵ/P: the weighted output tuples that are lost in a second."""
    return sum(
        (
            load.weight * load.selectivity * load.tuples * (1 - keep(load, cost_us)) * SECOND / load.period_us
            for load, cost_us in zip(loads, costs_us, strict=True)
        ),
        start=Fraction(0),
    )


def shed(loads: Sequence[QueryLoad], rule: Rule) -> list[int] | None:
    """The costs E' at which all queries meet their deadlines; None if not even the least costs fit."""
    order = by_priority(loads)
    ordered = [loads[place] for place in order]
    in_order = (
        _least_error(ordered) if rule == "least-error" else shed_in_order(ordered, demand_of(ordered), rule)
    )
    if in_order is None:
        return None
    costs_us = [0] * len(loads)
    for place, cost_us in zip(order, in_order, strict=True):
        costs_us[place] = cost_us
    return costs_us


def raised(loads: Sequence[QueryLoad], costs_us: Sequence[int]) -> list[int]:
    """Costs that meet all deadlines, raised by the largest common factor at which they still do.

    Otherwise a window slightly larger than the last one would be cut although there is time.
    """
    order = by_priority(loads)
    ordered, in_order = [loads[place] for place in order], [costs_us[place] for place in order]
    if not ordered:
        return []
    of_kind = stretch_of_many if _takes_arrays(ordered, in_order) else stretch_of_few
    instant_us, asked_us = of_kind(ordered, in_order)
    if instant_us <= asked_us:
        return list(costs_us)
    return [cost_us * instant_us // asked_us for cost_us in costs_us]


def _least_error(ordered: Sequence[QueryLoad]) -> list[int] | None:
    """The better of cutting the queries that lose least, level by level, and the paper's rule."""
    demand = demand_of(ordered)
    costs_us = shed_in_order(ordered, demand, "least-error")
    lost = demand.lost
    if costs_us is None or lost == 0:
        return costs_us
    of_paper = shed_in_order(ordered, demand, "paper", lost * (1 + _DOUBT))
    if of_paper is None or of_paper == costs_us:
        return costs_us
    if demand.lost < lost * (1 - _DOUBT):
        return of_paper
    return min(costs_us, of_paper, key=lambda costs: weighted_error(ordered, costs))


def shed_in_order(
    ordered: Sequence[QueryLoad], demand: Demand, rule: Rule, lost_most: float = inf
) -> list[int] | None:
    """The costs by priority; None if the least costs do not fit, or the loss is above the limit."""
    demand.restart()
    exhausted = False
    for level in demand.steps:
        overruns_us = demand.enter(level)
        if min(overruns_us) <= 0:
            continue
        if rule == "least-error":
            enough = demand.cut_cheapest(level, overruns_us)
        else:
            enough = _cut_at_one_point(demand, level, overruns_us, rule)
        if not enough:
            demand.cut_to_least(level)
            exhausted = True
        if demand.lost > lost_most:
            return None
    costs_us = demand.costs_us()
    # If points were left out, the least costs may hold although they have no room at the others.
    return None if exhausted and not is_schedulable(ordered, costs_us) else costs_us


def _cut_at_one_point(demand: Demand, level: int, overruns_us: Sequence[int], rule: Rule) -> bool:
    """Cuts in proportion at the deadline, at the point of least overrun, or at any point with room."""
    points = range(len(overruns_us))
    if rule == "paper" and demand.cut_in_proportion(level, points[-1], overruns_us[-1]):
        return True
    by_overrun = sorted(points, key=lambda point: (overruns_us[point], -point))
    return any(demand.cut_in_proportion(level, point, overruns_us[point]) for point in by_overrun)


def demand_of(ordered: Sequence[QueryLoad]) -> Demand:
    whole = [load.cost_us for load in ordered]
    return DemandOfMany(ordered) if _takes_arrays(ordered, whole) else DemandOfFew(ordered)


def _takes_arrays(ordered: Sequence[QueryLoad], costs_us: Sequence[int]) -> bool:
    """Lists are for few queries; arrays for more, if their integers are large enough."""
    if len(ordered) <= _FEW:
        return False
    last = ordered[-1].deadline_us
    releases = [last // load.period_us + 1 for load in ordered]
    asked: int = sum(map(mul, releases, costs_us))
    return asked < _INT64
