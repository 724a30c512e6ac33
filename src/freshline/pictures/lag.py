"""The lag of tables over time (paper 001, figure 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from freshline.pictures.figures import (
    COLORS,
    COLUMNS,
    Points,
    Span,
    names_as_written,
    shade,
    span_colors,
    span_handles,
    unit_of,
)


@dataclass(frozen=True, slots=True)
class Lags:
    """The data of one run's picture. Groups of tables have names."""

    groups: Mapping[str, Mapping[str, Points]]  # by group and table
    end_us: int
    spans: Sequence[Span] = ()


@names_as_written
def lag_figure(runs: Mapping[str, Lags], title: str) -> Figure:
    """The lag TE − F of tables over time, one line for each table.

    Each group has its own axes in every run. Several runs have the same groups; they stand below each other
    on the same scale, for comparison.
    """
    groups = next(iter(runs.values())).groups.keys()
    columns = len(groups) if len(runs) > 1 else min(COLUMNS, len(groups))
    rows = -(-len(runs) * len(groups) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.7 * rows + 0.6), layout="constrained")
    unit_us, unit = unit_of(max(run.end_us for run in runs.values()))
    colors = span_colors([span for run in runs.values() for span in run.spans])
    for column, group in enumerate(groups):
        lines = [line for run in runs.values() for line in run.groups[group].values()]
        highest_us = max(lag for line in lines for _, lag in line)
        for row, (name, run) in enumerate(runs.items()):
            number = row * len(groups) + column
            axes = figure.add_subplot(rows, columns, number + 1)
            shade(axes, run.spans, colors, unit_us)
            _draw_lags(axes, run.groups[group], highest_us, unit_us)
            axes.set_xlim(0, run.end_us / unit_us)
            axes.set_title(f"{name}: {group}" if len(runs) > 1 else group, fontsize=10)
            if number >= len(runs) * len(groups) - columns:
                axes.set_xlabel(f"time ({unit})")
    if colors:
        figure.legend(handles=span_handles(colors), loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(title)
    return figure


def _draw_lags(axes: Axes, lines: Mapping[str, Points], highest_us: int, unit_us: int) -> None:
    height_us, height = unit_of(highest_us)
    # The larger colour map has pairs of colours that look alike.
    colors = colormaps["tab10" if len(lines) <= 10 else "tab20"]
    for number, (table, points) in enumerate(lines.items()):
        axes.plot(
            [at / unit_us for at, _ in points],
            [lag / height_us for _, lag in points],
            linewidth=0.8,
            color=colors(number % COLORS),
            label=table,
        )
    axes.set_ylim(0, 1.05 * highest_us / height_us or None)
    axes.set_ylabel(f"lag ({height})", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, loc="upper right")
