"""If not all outputs can be in time: keeps the most important deadlines, and stretches the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from freshline.planning.placement.place import place
from freshline.planning.placement.placement import Placement
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.sub_deadlines import longest_path
from freshline.planning.placement.tightening import shortest


@dataclass(frozen=True, slots=True)
class ImportantPlacement:
    """A placement that is in time for all outputs but the stretched ones."""

    placement: Placement
    stretched: Mapping[str, float]  # by output: the factor on its deadline
    plan: PlacementPlan  # that it holds for: with very long deadlines for the stretched ones


def place_important(
    plan: PlacementPlan,
    ranked: Sequence[str],
    limit_s: float,
    kept: Mapping[str, str] | None = None,
) -> ImportantPlacement | None:
    """A placement that keeps the deadlines of as many outputs as possible; None if links allow none.

    `ranked` has outputs, the most important first; an output that is not in it is always stretched. Each
    keeps its deadline if it can beside those before it that do.
    """
    in_time: list[str] = []
    found = _placed(plan, in_time, limit_s, kept)
    if found is None:
        return None
    left = list(ranked)
    while left:
        # The longest part of the rest that can be kept; what comes after it is stretched.
        low, high = 0, len(left)
        while low < high:
            middle = (low + high + 1) // 2
            tried = _placed(plan, [*in_time, *left[:middle]], limit_s, kept)
            if tried is None:
                high = middle - 1
            else:
                low, found = middle, tried
        in_time += left[:low]
        left = left[low + 1 :]
    return _tightened(plan, found, in_time)


def _placed(
    plan: PlacementPlan, in_time: Collection[str], limit_s: float, kept: Mapping[str, str] | None
) -> Placement | None:
    """A placement that keeps these deadlines, with all others long enough for any placement; None if none."""
    found = place(_relaxed(plan, in_time), limit_s, kept=kept)
    return found if found.holds else None


def _relaxed(plan: PlacementPlan, in_time: Collection[str]) -> PlacementPlan:
    slowest = min(node.speed for node in plan.nodes)
    work = sum((operator.cost for operator in plan.operators), Fraction(0)) / slowest
    longest = max(node.blocking for node in plan.nodes) + work
    ample = 2 * len(plan.operators) * longest
    outputs = [
        output if output.stream in in_time else replace(output, deadline=max(ample, output.deadline))
        for output in plan.outputs
    ]
    return replace(plan, outputs=tuple(outputs))


def _tightened(plan: PlacementPlan, found: Placement, in_time: Collection[str]) -> ImportantPlacement:
    """The placement with the shortest sub-deadlines for steps that only stretched outputs need.

    Those are the left sides of (6), in its order, and the slack of their node, which longer jobs may use.
    """
    layout = found.layout
    assert layout is not None
    relaxed = _relaxed(plan, in_time)
    needed = {layout.nodes[each.operator] for each in layout.sub_deadlines if each.output in in_time}
    loads = [node if node.name in needed else replace(node, slack=None) for node in found.nodes]
    short = shortest(relaxed, layout, {node.name: node.slack or 0.0 for node in loads})
    late = [output.stream for output in plan.outputs if output.stream not in in_time]
    stretched = {
        goal.stream: longest_path(goal, short.least) / float(output.deadline)
        for goal, output in zip(short.programme.goals, plan.outputs, strict=True)
        if goal.stream in late
    }
    tight = replace(found, layout=short.applied(layout, late), nodes=tuple(loads))
    return ImportantPlacement(tight, stretched, relaxed)
