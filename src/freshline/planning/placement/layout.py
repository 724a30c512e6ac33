"""A placement of units in terms of operators: nodes, routes, loads and the tasks of each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import inf

from freshline.planning.placement.placement import NodeLoad, PlacementLayout, Route, SubDeadline
from freshline.planning.placement.programme import Programme
from freshline.planning.placement.sub_deadlines import SubDeadlineRule, left_sides


def layout_of(programme: Programme, nodes: Sequence[int], rule: SubDeadlineRule) -> PlacementLayout:
    """The nodes, routes and sub-deadlines of a placement; no sub-deadlines if the rule finds none."""
    plan = programme.plan
    node_of = {
        plan.operators[operator].name: plan.nodes[nodes[number]].name
        for number, unit in enumerate(programme.units)
        for operator in unit.operators
    }
    return PlacementLayout(
        {operator.name: node_of[operator.name] for operator in plan.operators},
        tuple(_routes(programme, node_of)),
        tuple(_sub_deadlines(programme, nodes, rule)),
    )


def _sub_deadlines(programme: Programme, nodes: Sequence[int], rule: SubDeadlineRule) -> list[SubDeadline]:
    """The sub-deadlines of every output; within a unit in proportion to the costs."""
    operators, least = programme.plan.operators, left_sides(programme, nodes)
    found = []
    for number, goal in enumerate(programme.goals):
        lengths = rule.of(number, least)
        if lengths is None:
            return []
        by_place = {
            place: SubDeadline(
                goal.stream,
                operators[place].name,
                length * float(operators[place].cost / programme.units[unit].cost),
            )
            for unit, length in lengths.items()
            for place in programme.units[unit].operators
        }
        found += [by_place[place] for place in sorted(by_place)]
    return found


def _routes(programme: Programme, node_of: dict[str, str]) -> list[Route]:
    plan, links = programme.plan, programme.links
    number_of = {node.name: number for number, node in enumerate(plan.nodes)}
    origins: dict[str, list[int]] = defaultdict(list)
    goals: dict[str, list[int]] = defaultdict(list)
    for source in plan.sources:
        origins[source.stream].append(number_of[source.node])
    for operator in plan.operators:
        here = number_of[node_of[operator.name]]
        for stream in operator.outputs:
            origins[stream].append(here)
        for stream in operator.inputs:
            goals[stream].append(here)
    for output in plan.outputs:
        if output.node is not None:
            goals[output.stream].append(number_of[output.node])
    return [
        Route(stream, plan.nodes[one].name, plan.nodes[other].name)
        for stream, at in origins.items()
        for _, one, other in links.tree(stream, at, goals[stream])
    ]


def loads_of(
    programme: Programme, nodes: Sequence[int], sub_deadline: dict[str, float]
) -> tuple[NodeLoad, ...]:
    """Σ c/speed of each node, and its least D_o less the left side of (6)."""
    operators, least = programme.plan.operators, left_sides(programme, nodes)
    slack = [inf] * len(programme.plan.nodes)
    load = [0.0] * len(slack)
    for unit in programme.order:
        node = nodes[unit]
        load[node] += programme.cost[unit] / programme.speed[node]
        if sub_deadline:
            own = sum(sub_deadline[operators[place].name] for place in programme.units[unit].operators)
            slack[node] = min(slack[node], own - least[unit])
    return tuple(
        NodeLoad(node.name, load[number], None if slack[number] == inf else max(0.0, slack[number]))
        for number, node in enumerate(programme.plan.nodes)
    )
