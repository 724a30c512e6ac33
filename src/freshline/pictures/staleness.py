"""Staleness over time, with its proven bound and its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from freshline.pictures.figures import (
    COLUMNS,
    Points,
    Span,
    names_as_written,
    shade,
    span_colors,
    span_handles,
    unit_of,
)

_STALENESS, _BOUND, _TARGET = "#1f77b4", "#d62728", "#2ca02c"


@dataclass(frozen=True, slots=True)
class Curve:
    """The staleness of one table over a run, with its limits. Instants count from the start of the run."""

    name: str
    points: Points
    bound_us: int | None
    target_us: int | None
    end_us: int


def closeness(staleness_us: int, bound_us: int | None, target_us: int | None) -> float:
    """How close a table came to the nearer of its limits; 1 is at the limit. Without limits it is first."""
    limits = [limit for limit in (bound_us, target_us) if limit is not None]
    return staleness_us / min(limits) if limits else float("inf")


@names_as_written
def staleness_figure(curves: Sequence[Curve], end_us: int, title: str, spans: Sequence[Span] = ()) -> Figure:
    """Every curve in its own axes, with bound and target."""
    columns = min(COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.5 * rows + 0.6), layout="constrained")
    unit_us, unit = unit_of(end_us)
    colors = span_colors(spans)
    for number, curve in enumerate(curves):
        axes = figure.add_subplot(rows, columns, number + 1)
        shade(axes, spans, colors, unit_us)
        _draw_curve(axes, curve, unit_us)
        if number >= len(curves) - columns:
            axes.set_xlabel(f"time ({unit})")
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=_BOUND, label="proven bound"),
        Line2D([], [], color=_TARGET, linestyle="--", label="target"),
        Line2D([], [], color=_STALENESS, label="staleness"),
        *span_handles(colors),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(title)
    return figure


def _draw_curve(axes: Axes, curve: Curve, unit_us: int) -> None:
    highest_us = max((staleness for _, staleness in curve.points), default=0)
    height_us, height = unit_of(max(highest_us, curve.bound_us or 0, curve.target_us or 0))
    axes.plot(
        [at / unit_us for at, _ in curve.points],
        [staleness / height_us for _, staleness in curve.points],
        linewidth=0.7,
        color=_STALENESS,
    )
    if curve.bound_us is not None:
        axes.axhline(curve.bound_us / height_us, color=_BOUND, linewidth=1.2)
    if curve.target_us is not None:
        axes.axhline(curve.target_us / height_us, color=_TARGET, linewidth=1.2, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, curve.end_us / unit_us)
    axes.set_title(curve.name, fontsize=10)
    axes.set_ylabel(height, fontsize=8)
    axes.tick_params(labelsize=8)
