"""Nodes with their operators and sub-deadlines (paper 002)."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from freshline.pictures.figures import CURVES_MAX, names_as_written
from freshline.planning.placement.placement import PlacementLayout
from freshline.planning.placement.plan import PlacementPlan

# More would not be readable on a page.
_OPERATORS_MAX: Final = 40
_ROW: Final = 0.24
# With a longer bar than this multiple of the shortest, the shortest would be invisible.
_LINEAR_MOST: Final = 30
_DEADLINE: Final = "#c6dbef"
_COST: Final = "#2171b5"


@names_as_written
def placement_figure(plan: PlacementPlan, layout: PlacementLayout, title: str) -> Figure:
    """A row of axes for each node: the cost of each operator there, within its sub-deadline."""
    sub_deadline = layout.sub_deadline
    rows = []
    for node in plan.nodes[:CURVES_MAX]:
        here = [operator for operator in plan.operators if layout.nodes[operator.name] == node.name]
        here.sort(key=lambda operator: sub_deadline.get(operator.name, float("inf")))
        rows.append((node, here[:_OPERATORS_MAX], len(here)))
    heights = [max(1, len(shown)) * _ROW + 0.8 for _, shown, _ in rows]
    figure = Figure(figsize=(10, sum(heights) + 0.6), layout="constrained")
    grid = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    longest = max(sub_deadline.values(), default=1.0)
    least = min(sub_deadline.values(), default=1.0)
    for number, (node, shown, count) in enumerate(rows):
        axes = figure.add_subplot(grid[number, 0])
        places = range(len(shown))
        until = [sub_deadline.get(operator.name, 0.0) for operator in shown]
        costs = [float(operator.cost / node.speed) for operator in shown]
        axes.barh(places, until, color=_DEADLINE, label="sub-deadline")
        axes.barh(places, costs, height=0.4, color=_COST, label="cost here")
        for place, length in zip(places, until, strict=True):
            axes.text(length, place, f" {length:.4g} s" if length else " not needed", va="center", fontsize=7)
        axes.set_yticks(list(places), [operator.name for operator in shown], fontsize=8)
        axes.set_ylim(max(0.5, len(shown) - 0.5), -0.5)
        if longest > _LINEAR_MOST * least:
            axes.set_xscale("log")
            axes.set_xlim(least / 10, 2 * longest)
        else:
            axes.set_xlim(0, 1.1 * longest)
        beyond = f", {len(shown)} of {count} operators" if count > len(shown) else ""
        axes.set_title(f"{node.name}{beyond}", fontsize=10)
        if number == 0:
            axes.legend(fontsize=8)
    beyond = f", {len(rows)} of {len(plan.nodes)} nodes" if len(plan.nodes) > len(rows) else ""
    figure.supxlabel("seconds", fontsize=9)
    figure.suptitle(f"{title}{beyond}", fontsize=12)
    return figure
