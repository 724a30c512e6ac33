"""Figures of service classes under several policies: by load, and over time (paper 003)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from freshline.pictures.figures import names_as_written

Line = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    """Axes with a line for each policy, and levels to compare with."""

    title: str
    lines: Mapping[str, Line]
    levels: Sequence[float] = ()  # the reference, and the limit above it


@names_as_written
def classes_figure(rows: Sequence[Sequence[Panel]], along: str, title: str) -> Figure:
    """A row of panels for each measure."""
    columns = max(len(row) for row in rows)
    figure = Figure(figsize=(3.4 * columns, 2.5 * len(rows) + 0.6), layout="constrained")
    for number, row in enumerate(rows):
        for column, panel in enumerate(row):
            axes = figure.add_subplot(len(rows), columns, number * columns + column + 1)
            for policy, line in panel.lines.items():
                axes.plot(*zip(*line, strict=True), label=policy, linewidth=1.2)
            for level, style in zip(panel.levels, ("--", "-."), strict=False):
                axes.axhline(level, color="grey", linestyle=style, linewidth=0.9)
            axes.set_title(panel.title, fontsize=10)
            axes.set_ylim(bottom=0)
            if number == len(rows) - 1:
                axes.set_xlabel(along)
            if number == column == 0:
                axes.legend(fontsize=7)
    figure.suptitle(title, fontsize=12)
    return figure
