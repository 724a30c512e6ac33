"""The tasks of a node (5.3): operators that run one after another for the same input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from freshline.planning.placement.placement import PlacedTask, PlacementLayout
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import topological


def tasks_of(plan: PlacementPlan, layout: PlacementLayout) -> tuple[PlacedTask, ...]:
    """Tasks by node, then by first operator; without operators that no output needs."""
    operators, sub_deadline = plan.operators, layout.sub_deadline
    following = _following(plan, layout.nodes)
    continued = set(following.values())
    tasks = []
    for first, operator in enumerate(operators):
        if first in continued or operator.name not in sub_deadline:
            continue
        chain = [first]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        names = tuple([operators[each].name for each in chain])
        cost = float(sum(operators[each].cost for each in chain))
        length = sum(sub_deadline[name] for name in names)
        tasks.append(PlacedTask(layout.nodes[operator.name], names, cost, length))
    place = {node.name: number for number, node in enumerate(plan.nodes)}
    return tuple(sorted(tasks, key=lambda task: place[task.node]))


def _following(plan: PlacementPlan, nodes: Mapping[str, str]) -> dict[int, int]:
    """By operator: the next one of its task.

    An operator has an edge for each reader of its streams and for each output of the plan that it makes. The
    edge that leads to the least deadline counts. The task goes on there if that reader has no other input and
    is on the same node.
    """
    operators = plan.operators
    readers: dict[str, list[int]] = defaultdict(list)
    for number, operator in enumerate(operators):
        for stream in operator.inputs:
            readers[stream].append(number)
    deadline = {output.stream: output.deadline for output in plan.outputs}

    def edges(number: int) -> list[tuple[Fraction, int]]:
        """(deadline, reader), with -1 for the output itself, which comes first in ties."""
        found = []
        for stream in operators[number].outputs:
            if stream in deadline:
                found.append((deadline[stream], -1))
            for reader in readers[stream]:
                behind = least(reader)
                if behind is not None:
                    found.append((behind, reader))
        return found

    @cache
    def least(number: int) -> Fraction | None:
        """The least deadline of the outputs downstream of an operator; None without one."""
        return min((each for each, _ in edges(number)), default=None)

    following = {}
    for number in reversed(topological(plan)):
        _, reader = min(edges(number), default=(None, -1))
        if reader < 0 or len(operators[reader].inputs) != 1:
            continue
        if nodes[operators[reader].name] == nodes[operators[number].name]:
            following[number] = reader
    return following
