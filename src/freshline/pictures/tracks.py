"""The jobs on tracks over time."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from freshline.pictures.bars import TRACKS_MAX, Bar
from freshline.pictures.figures import COLORS, names_as_written, unit_of


@names_as_written
def tracks_figure(
    bars: Sequence[Bar], names: Sequence[str], tasks: Sequence[str], until: int, title: str
) -> Figure:
    """The bars of the first tracks, labelled with their names; one colour for each task."""
    tracks = min(len(names), TRACKS_MAX)
    unit_us, unit = unit_of(until)
    colors = colormaps["tab20"]
    color_of = {task: colors(number % COLORS) for number, task in enumerate(tasks)}
    figure = Figure(figsize=(12, 1.6 + 0.32 * tracks), layout="constrained")
    axes = figure.add_subplot()
    for bar in bars:
        axes.broken_barh(
            [(bar.start / unit_us, (bar.end - bar.start) / unit_us)],
            (bar.track - 0.4, 0.8),
            facecolor=color_of[bar.task],
            linewidth=0,
        )
    axes.set_xlim(0, until / unit_us)
    axes.set_ylim(tracks - 0.5, -0.5)
    axes.set_yticks(range(tracks), names[:tracks], fontsize=8)
    axes.set_xlabel(f"time ({unit})")
    axes.set_title(title)
    drawn = {bar.task for bar in bars}
    if len(drawn) <= COLORS:
        handles = [Patch(color=color_of[task], label=task) for task in tasks if task in drawn]
        figure.legend(handles=handles, loc="outside right upper", fontsize=7)
    return figure
