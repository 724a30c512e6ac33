"""If no placement is in time: how much longer all deadlines would have to be, and the obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from freshline.planning.placement.bounds import Bounds, bounds_within, least_left_sides
from freshline.planning.placement.layout import layout_of
from freshline.planning.placement.mip import least_stretch
from freshline.planning.placement.placement import Infeasible, Placement
from freshline.planning.placement.programme import TOLERANCE, Goal, Programme
from freshline.planning.placement.search import search
from freshline.planning.placement.solver import GAP_MOST
from freshline.planning.placement.sub_deadlines import SubDeadlineRule, latest, left_sides, stretch

# Of the limit, for the least stretch, once a stretch is proven necessary.
_SHARE_ONCE_PROVEN = 0.1
_HALVINGS = 5


@dataclass(frozen=True, slots=True)
class StretchedPlacement:
    """The best placement found, the factor it needs, and the factor that every placement needs."""

    nodes: list[int] | None
    factor: float
    bound: float  # infinite if links allow no placement
    seconds: float = 0.0


def stretched(programme: Programme, start: list[int] | None, limit_s: float) -> StretchedPlacement:
    """The placement of the least stretch, or any that needs none."""
    bound = stretch(programme, least_left_sides(programme))
    found = StretchedPlacement(start, _factor(programme, start), bound)
    found = _by_halving(programme, found)
    if found.factor <= max(1.0, bound) * (1 + TOLERANCE):
        return found
    proven = bound > 1 + TOLERANCE
    limit_s *= _SHARE_ONCE_PROVEN if proven else 1.0
    solved = least_stretch(
        programme, _bounds(programme, found.factor), found.nodes, limit_s, None if proven else 1.0
    )
    factor = _factor(programme, solved.nodes)
    if factor <= found.factor:
        found = StretchedPlacement(solved.nodes, factor, bound)
    if found.nodes is not None and solved.bound < inf:
        bound = max(bound, min(solved.bound, found.factor))
    return replace(found, bound=bound if found.nodes is not None else solved.bound, seconds=solved.seconds)


def _factor(programme: Programme, nodes: Sequence[int] | None) -> float:
    return inf if nodes is None else stretch(programme, left_sides(programme, nodes))


def _by_halving(programme: Programme, found: StretchedPlacement) -> StretchedPlacement:
    """Repeats the search with longer deadlines, but shorter than needed so far."""
    for _ in range(_HALVINGS):
        low = max(1.0, found.bound)
        if found.nodes is None or found.factor <= low * (1 + GAP_MOST):
            break
        nodes = search(programme, SubDeadlineRule(programme, (low + found.factor) / 2))
        factor = _factor(programme, nodes)
        if factor >= found.factor:
            break
        found = StretchedPlacement(nodes, factor, found.bound)
    return found


def _bounds(programme: Programme, factor: float) -> Bounds:
    if factor < inf:
        return bounds_within(programme, SubDeadlineRule(programme, factor * (1 + TOLERANCE)))
    everything = max(programme.blocking) + sum(programme.cost) / min(programme.speed)
    return Bounds(least_left_sides(programme), dict.fromkeys(programme.order, everything))


def not_in_time(programme: Programme, found: StretchedPlacement) -> Placement:
    """The result without a placement in time; it is infeasible only if that is proven."""
    if found.bound == inf:
        reason = "over these links no placement lets every stream reach its readers"
        return Placement("infeasible", None, None, None, infeasible=Infeasible(reason, (), (), None, None))
    if found.nodes is None:
        return Placement("unknown", None, None, None)
    least = left_sides(programme, found.nodes)
    late = [
        goal
        for goal in programme.goals
        if latest(goal, least)[goal.last] >= found.factor * float(goal.deadline) * (1 - TOLERANCE)
    ]
    on_the_way = {found.nodes[unit] for goal in late for unit in _critical(goal, least)}
    proven = found.bound > 1 + TOLERANCE
    return Placement(
        "infeasible" if proven else "unknown",
        None,
        None,
        None,
        infeasible=Infeasible(
            f"every placement needs deadlines at least {found.bound:.6g} times as long"
            if proven
            else "no placement was found in time, nor a proof that there is none",
            tuple([goal.stream for goal in late]),
            tuple([programme.plan.nodes[node].name for node in sorted(on_the_way)]),
            found.factor,
            layout_of(programme, found.nodes, SubDeadlineRule(programme, found.factor)),
        ),
    )


def cut_off(programme: Programme) -> Placement:
    """The result for a plan with operators that no node can run."""
    operators, domains = programme.plan.operators, programme.domains
    nowhere = [unit for unit in range(len(domains)) if not domains[unit]]
    outputs = [goal.stream for goal in programme.goals if not all(domains[unit] for unit in goal.units)]
    name = operators[programme.units[nowhere[0]].operators[0]].name
    reason = f"over these links no node can run {name!r} where its inputs and its readers are within reach"
    return Placement(
        "infeasible", None, None, None, infeasible=Infeasible(reason, tuple(outputs), (), None, None)
    )


def _critical(goal: Goal, least: dict[int, float]) -> set[int]:
    """The units of the longest paths to an output."""
    ends = latest(goal, least)
    found = set()
    waiting = [goal.last]
    while waiting:
        unit = waiting.pop()
        if unit not in found:
            found.add(unit)
            begin = max([ends[each] for each in goal.reads[unit]], default=0.0)
            waiting += [each for each in goal.reads[unit] if ends[each] >= begin * (1 - TOLERANCE)]
    return found
