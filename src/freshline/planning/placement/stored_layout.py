"""Checks a placement with given sub-deadlines: (5) for every output, and (6) for every node.

Any order of operators will do in (6) (docs/placement.md). That of the sub-deadlines admits most.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshline.planning.placement.layout import loads_of
from freshline.planning.placement.placement import Infeasible, Placement, PlacementLayout, SubDeadline
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import TOLERANCE, Programme, programme_of
from freshline.planning.placement.stretch import cut_off
from freshline.planning.placement.sub_deadlines import longest_path

# Sub-deadlines are stored in whole microseconds, rounded down.
_ROUNDING_S = 1e-6


def check_layout(
    plan: PlacementPlan, nodes: Mapping[str, str], sub_deadlines: Mapping[str, float]
) -> Placement:
    """The placement with these nodes and sub-deadlines, in seconds, of all operators."""
    programme = programme_of(plan, nodes)
    if not all(programme.domains):
        return cut_off(programme)
    names = [node.name for node in plan.nodes]
    operators = plan.operators
    own = [
        [operators[place].name for place in programme.units[unit].operators]
        for unit in range(len(programme.units))
    ]
    node_of = [names.index(nodes[unit[0]]) for unit in own]
    length = {unit: sum(sub_deadlines[name] for name in own[unit]) for unit in programme.order}
    late = tuple(
        goal.stream
        for goal in programme.goals
        if longest_path(goal, length) > float(goal.deadline) * (1 + TOLERANCE)
    )
    busy = _too_busy(programme, node_of, length)
    layout = PlacementLayout(
        nodes,
        (),
        tuple(
            SubDeadline(goal.stream, name, sub_deadlines[name])
            for goal in programme.goals
            for unit in goal.units
            for name in own[unit]
        ),
    )
    loads = loads_of(programme, node_of, layout.sub_deadline)
    if not late and not busy:
        return Placement("feasible", None, None, layout, nodes=loads)
    reason = f"its sub-deadlines are too long for the deadline of {', '.join(late)}"
    if busy:
        reason = f"its sub-deadlines are too short for the steps on {', '.join(busy)}"
    return Placement(
        "infeasible", None, None, layout, nodes=loads, infeasible=Infeasible(reason, late, busy, None, None)
    )


def _too_busy(programme: Programme, node_of: list[int], length: Mapping[int, float]) -> tuple[str, ...]:
    """The nodes where (6) does not hold."""
    found = []
    for number, node in enumerate(programme.plan.nodes):
        done = programme.blocking[number]
        there = [unit for unit in programme.order if node_of[unit] == number]
        for unit in sorted(there, key=lambda unit: length[unit]):
            done += programme.cost[unit] / programme.speed[number]
            rounding = _ROUNDING_S * len(programme.units[unit].operators)
            if done > length[unit] * (1 + TOLERANCE) + rounding:
                found.append(node.name)
                break
    return tuple(found)
