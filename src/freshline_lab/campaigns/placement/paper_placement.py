"""Paper 002's programme as printed, with x, y and l and every path: the reference for placements.

It has the necessary corrections: (4) has h⁺ − h⁻, every operator is on a node, (6) counts an operator once
and only on its node, and outputs reach their sinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import Goal, Programme, programme_of
from freshline.planning.placement.solver import Solver, SolverResult


def paper_objective(plan: PlacementPlan, limit_s: float = 60.0) -> SolverResult:
    """The least objective (3); `bound` is infinite if the programme has no solution."""
    return paper_programme(plan).solve(None, limit_s)


def paper_stretch(plan: PlacementPlan, limit_s: float = 60.0) -> SolverResult:
    """The least factor on all deadlines with which the programme has a solution."""
    return paper_programme(plan, stretched=True).solve(None, limit_s)


def paper_programme(plan: PlacementPlan, stretched: bool = False) -> Solver:
    """(3)–(11) over the units of a plan; stretched: the least factor in (5) instead of (3)."""
    programme = programme_of(plan)
    model = Solver()
    nodes = range(len(plan.nodes))
    z = {
        (unit, node): model.column(0.0, 1.0, whole=True)
        for unit in range(len(programme.units))
        for node in nodes
    }
    for unit, members in enumerate(programme.units):
        model.row(1.0, 1.0, *((z[unit, node], 1.0) for node in nodes))
        for place in members.operators:
            allowed = plan.operators[place].nodes
            for node in nodes:  # (10)
                if allowed is not None and plan.nodes[node].name not in allowed:
                    model.row(0.0, 0.0, (z[unit, node], 1.0))
    _streams(model, programme, z)
    factor = model.column(0.0, inf, 1.0) if stretched else None
    d: dict[tuple[int, int], int] = {}
    for number, goal in enumerate(programme.goals):
        for unit in goal.units:
            d[number, unit] = model.column(0.0, inf)
            if not stretched:  # (4)
                more, fewer = model.column(0.0, inf, 1.0), model.column(0.0, inf, 1.0)
                ratio = programme.ratio[number]
                share = d[number, unit], 1 / programme.cost[unit]
                model.row(ratio, ratio, share, (more, 1.0), (fewer, -1.0))
        for path in _paths(goal, goal.last):  # (5)
            entries = tuple((d[number, unit], 1.0) for unit in path)
            if factor is None:
                model.row(-inf, float(goal.deadline), *entries)
            else:
                model.row(-inf, 0.0, *entries, (factor, -float(goal.deadline)))
    _loads(model, programme, z, d)
    return model


def _loads(
    model: Solver, programme: Programme, z: dict[tuple[int, int], int], d: dict[tuple[int, int], int]
) -> None:
    """(6), if o is on n."""
    for node in range(len(programme.plan.nodes)):
        before: list[tuple[int, float]] = []
        big = programme.blocking[node]
        for unit in programme.order:
            work = programme.cost[unit] / programme.speed[node]
            before.append((z[unit, node], -work))
            big += work
            for goal in programme.goals_of[unit]:
                *others, (own, _) = before
                entries = (d[goal, unit], 1.0), *others, (own, -work - big)
                model.row(programme.blocking[node] - big, inf, *entries)


def _streams(model: Solver, programme: Programme, z: dict[tuple[int, int], int]) -> None:
    """(7), (8), (9), (11) for every stream that leaves its unit."""
    plan, following = programme.plan, programme.links.next
    nodes = range(len(plan.nodes))
    number_of = {node.name: number for number, node in enumerate(plan.nodes)}
    unit_of = {place: number for number, unit in enumerate(programme.units) for place in unit.operators}
    made_by = {stream: unit_of[place] for place, each in enumerate(plan.operators) for stream in each.outputs}
    at = {(source.stream, number_of[source.node]) for source in plan.sources}
    y: dict[tuple[str, int], int] = {}
    for stream in dict.fromkeys([*(source.stream for source in plan.sources), *made_by]):
        x = {(one, other): model.column(0.0, 1.0, whole=True) for one in nodes for other in following[one]}
        level = [model.column(0.0, inf) for _ in nodes]
        for node in nodes:
            y[stream, node] = model.column(0.0, 1.0, whole=True)
            entries = [(column, 1.0) for (_, other), column in x.items() if other == node]
            if stream in made_by:
                entries.append((z[made_by[stream], node], 1.0))
            model.row(-float((stream, node) in at), inf, (y[stream, node], -1.0), *entries)  # (7)
        for (one, other), column in x.items():
            model.row(0.0, inf, (y[stream, one], 1.0), (column, -1.0))  # (9)
            big = len(nodes)
            model.row(1.0 - big, inf, (level[one], 1.0), (level[other], -1.0), (column, -float(big)))  # (11)
    for place, operator in enumerate(plan.operators):
        for stream in operator.inputs:
            for node in nodes:
                if made_by.get(stream) != unit_of[place]:
                    model.row(0.0, inf, (y[stream, node], 1.0), (z[unit_of[place], node], -1.0))  # (8)
    for output in plan.outputs:
        if output.node is not None:
            model.row(1.0, 1.0, (y[output.stream, number_of[output.node]], 1.0))


def _paths(goal: Goal, unit: int) -> Iterator[tuple[int, ...]]:
    if not goal.reads[unit]:
        yield (unit,)
    for before in goal.reads[unit]:
        for path in _paths(goal, before):
            yield (*path, unit)
