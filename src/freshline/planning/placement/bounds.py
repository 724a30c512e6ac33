"""Bounds before any placement: the least left sides of (6), and the longest useful sub-deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from freshline.planning.placement.links import members
from freshline.planning.placement.programme import Programme
from freshline.planning.placement.sub_deadlines import SubDeadlineRule, latest


@dataclass(frozen=True, slots=True)
class Bounds:
    """By unit: the least left side of (6) on any node, and the longest useful sub-deadline."""

    least: Mapping[int, float]
    most: Mapping[int, float]


def least_left_sides(programme: Programme) -> dict[int, float]:
    """As if there were only this unit and those without a choice."""
    done = list(programme.blocking)
    found = {}
    for unit in programme.order:
        nodes = members(programme.domains[unit])
        if len(nodes) == 1:
            done[nodes[0]] += programme.cost[unit] / programme.speed[nodes[0]]
            found[unit] = done[nodes[0]]
        else:
            found[unit] = min(done[node] + programme.cost[unit] / programme.speed[node] for node in nodes)
    return found


def bounds_within(programme: Programme, rule: SubDeadlineRule, objective: float = inf) -> Bounds:
    """The bounds with the rule's deadlines and an objective of at most that."""
    least = least_left_sides(programme)
    most = dict.fromkeys(programme.order, inf)
    for number, goal in enumerate(programme.goals):
        ends = latest(goal, least)
        rest = dict.fromkeys(goal.reads, 0.0)  # the longest path from a unit's end to the output
        for unit in reversed(goal.units):
            for before in goal.reads[unit]:
                rest[before] = max(rest[before], rest[unit] + least[unit])
        for unit in goal.reads:
            room = rule.deadline[number] - (ends[unit] - least[unit]) - rest[unit]
            most[unit] = min(most[unit], room, _by_objective(programme, rule, number, unit, objective))
    # Rounding must not make a limit tighter.
    return Bounds(least, {unit: max(least[unit], limit) * (1 + 1e-9) for unit, limit in most.items()})


def _by_objective(
    programme: Programme, rule: SubDeadlineRule, number: int, unit: int, objective: float
) -> float:
    """d' + x costs x/c_o, and in a chain another unit must give up x, at 1/c for the longest at least."""
    goal, cost = programme.goals[number], programme.cost
    price = 1 / cost[unit]
    if goal.is_chain:
        others = [cost[each] for each in goal.reads if each != unit]
        price = price + 1 / max(others) if others else inf
    return rule.ideal[number][unit] + (objective / price if objective < inf or price < inf else inf)
