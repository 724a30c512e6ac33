"""Figures of continuous queries under several policies: over time, or by their number (paper 000)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matplotlib.figure import Figure

from freshline.pictures.figures import names_as_written

MEASURES: Final = {
    "miss_rate": "miss rate",
    "completion_rate": "completion rate",
    "total_error": "total error",
}

Line = Sequence[tuple[float, float]]


@names_as_written
def rates_figure(rows: Mapping[str, Mapping[str, Mapping[str, Line]]], along: str, title: str) -> Figure:
    """A row of axes for each workload, one for each measure, with a line for each policy."""
    figure = Figure(figsize=(12.5, 2.6 * len(rows) + 0.6), layout="constrained")
    for row, (name, by_measure) in enumerate(rows.items()):
        for column, (measure, lines) in enumerate(by_measure.items()):
            axes = figure.add_subplot(len(rows), len(MEASURES), row * len(MEASURES) + column + 1)
            for policy, line in lines.items():
                axes.plot(*zip(*line, strict=True), label=policy, linewidth=1.4)
            axes.set_title(f"{name}: {MEASURES[measure]}", fontsize=10)
            axes.set_ylim(bottom=0)
            if row == len(rows) - 1:
                axes.set_xlabel(along)
            if row == column == 0:
                axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=12)
    return figure
