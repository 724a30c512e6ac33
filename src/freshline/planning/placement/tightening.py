"""Shorter sub-deadlines for a placement: what (6) asks for, so that steps downstream begin sooner."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from freshline.planning.placement.placement import Placement, PlacementLayout, SubDeadline
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import Programme, programme_of
from freshline.planning.placement.sub_deadlines import left_sides

# Costs and sub-deadlines are rounded to microseconds: in seconds, what is left for that.
_ROUNDING: Final = 0.001


@dataclass(frozen=True, slots=True)
class Shortest:
    """The shortest sub-deadlines of a layout: the left sides of (6), in its order, and some slack."""

    programme: Programme
    least: Mapping[int, float]  # by unit

    def applied(self, layout: PlacementLayout, outputs: Collection[str]) -> PlacementLayout:
        """The layout with the shortest sub-deadlines for these outputs."""
        operators, units = self.programme.plan.operators, self.programme.units
        unit_of = {operator: unit for unit, each in enumerate(units) for operator in each.operators}
        place_of = {operator.name: place for place, operator in enumerate(operators)}

        def shortened(each: SubDeadline) -> SubDeadline:
            place = place_of[each.operator]
            unit = unit_of[place]
            share = operators[place].cost / units[unit].cost
            return each._replace(seconds=min(each.seconds, self.least[unit] * float(share)))

        tight = (shortened(each) if each.output in outputs else each for each in layout.sub_deadlines)
        return replace(layout, sub_deadlines=tuple(tight))


def shortest(plan: PlacementPlan, layout: PlacementLayout, slack: Mapping[str, float]) -> Shortest:
    """The shortest sub-deadlines of a layout that was made for this plan, with that slack by node."""
    programme = programme_of(plan, layout.nodes)
    number_of = {node.name: number for number, node in enumerate(plan.nodes)}
    nodes = [number_of[layout.nodes[plan.operators[unit.operators[0]].name]] for unit in programme.units]
    least = {
        unit: length + slack[plan.nodes[nodes[unit]].name]
        for unit, length in left_sides(programme, nodes).items()
    }
    return Shortest(programme, least)


def tightened(plan: PlacementPlan, found: Placement, keep_slack: bool) -> Placement:
    """A placement that holds for the plan, with the shortest sub-deadlines for all outputs.

    The slack of nodes, which longer jobs may use, is kept or given up.
    """
    layout = found.layout
    assert layout is not None
    slack = {node.name: node.slack or 0.0 for node in found.nodes}
    if not keep_slack:
        slack = {name: min(own, _ROUNDING) for name, own in slack.items()}
    tight = shortest(plan, layout, slack).applied(layout, [output.stream for output in plan.outputs])
    nodes = found.nodes
    if not keep_slack:
        nodes = tuple(replace(node, slack=None if node.slack is None else 0.0) for node in nodes)
    return replace(found, layout=tight, nodes=nodes)
