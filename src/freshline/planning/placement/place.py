"""Places operators and sets their sub-deadlines (paper 002, 5.2): a quick search, then the programme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Literal

from freshline.planning.placement.bounds import bounds_within, least_left_sides
from freshline.planning.placement.layout import layout_of, loads_of
from freshline.planning.placement.mip import least_objective
from freshline.planning.placement.placement import Placement, gap
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import TOLERANCE, Programme, programme_of
from freshline.planning.placement.search import search
from freshline.planning.placement.solver import GAP_MOST
from freshline.planning.placement.sqpr import sqpr
from freshline.planning.placement.stretch import cut_off, not_in_time, stretched
from freshline.planning.placement.sub_deadlines import SubDeadlineRule, left_sides
from freshline.planning.placement.tasks import tasks_of

Method = Literal["deadline", "sqpr"]


def place(
    plan: PlacementPlan,
    limit_s: float = 60.0,
    method: Method = "deadline",
    kept: Mapping[str, str] | None = None,
) -> Placement:
    """Places a plan's operators, with that many seconds for the solver.

    Operators in `kept` stay on their named node, which is one of their `nodes`. `sqpr` places by traffic and
    load; sub-deadlines are the best for that placement, and the layout stands even if it is late.
    """
    programme = programme_of(plan, kept)
    if not all(programme.domains):
        return cut_off(programme)
    if method == "deadline":
        return _by_deadlines(programme, limit_s)
    nodes = sqpr(programme, limit_s)
    if nodes is None:  # only links are the obstacle
        return _by_deadlines(programme, limit_s)
    layout = layout_of(programme, nodes, SubDeadlineRule(programme))
    found = _by_deadlines(programme_of(plan, layout.nodes), limit_s)
    if found.holds:
        return found
    return replace(found, layout=layout, nodes=loads_of(programme, nodes, {}))


def _by_deadlines(programme: Programme, limit_s: float) -> Placement:
    rule = SubDeadlineRule(programme)
    nodes = search(programme, rule)
    objective = inf if nodes is None else rule.objective(left_sides(programme, nodes))
    if nodes is None or objective == inf:
        longer = stretched(programme, nodes, limit_s)
        if longer.nodes is None or longer.factor > 1 + TOLERANCE:
            return not_in_time(programme, longer)
        nodes, limit_s = longer.nodes, limit_s - longer.seconds
        objective = rule.objective(left_sides(programme, nodes))
    bound = rule.objective(least_left_sides(programme))
    if gap(objective, bound) > GAP_MOST:
        bounds = bounds_within(programme, rule, objective * (1 + TOLERANCE))
        found = least_objective(programme, rule, bounds, nodes, limit_s)
        if found.bound < inf:  # it has a solution, whatever rounding does
            bound = max(bound, found.bound)
        better = inf if found.nodes is None else rule.objective(left_sides(programme, found.nodes))
        if found.nodes is not None and better < objective:
            nodes, objective = found.nodes, better
    bound = min(bound, objective)
    layout = layout_of(programme, nodes, rule)
    return Placement(
        "optimal" if gap(objective, bound) <= GAP_MOST else "feasible",
        objective,
        bound,
        layout,
        tasks_of(programme.plan, layout),
        loads_of(programme, nodes, layout.sub_deadline),
    )
