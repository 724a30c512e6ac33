"""Pictures of a run: staleness against its bound, lag, and what the tracks did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from freshline.definitions.duration import DAY, HOUR, MINUTE, SECOND, format_duration
from freshline.definitions.errors import InputError
from freshline.simulation.lag import lag_points
from freshline.simulation.observation import History
from freshline.simulation.outages import Outages
from freshline.simulation.simulate import SimulationResult, TableResult

# More would not be told apart on a page.
CURVES_MAX = 12
_PIXELS = 1_000  # across a curve's axes, generously
_COLUMNS = 3
_TRACKS_MAX = 60
_BARS_MAX = 300
_COLORS = 20
_STALENESS, _BOUND, _TARGET = "#1f77b4", "#d62728", "#2ca02c"
_SPANS = ("#ff7f0e", "#9467bd", "#8c564b", "#7f7f7f")
_SHADE = 0.18
_FEEDS_NAMED = 4
# A user's name is shown as it is, whatever matplotlib would make of `$` in it.
_names_as_written = rc_context({"text.parse_math": False})


@dataclass(frozen=True, slots=True)
class Curve:
    """One table's staleness over a run, beside its limits. Instants count from the run's beginning."""

    name: str
    points: Sequence[tuple[int, int]]  # (instant, staleness)
    bound_us: int | None
    target_us: int | None
    end_us: int


class Bar(NamedTuple):
    """A job on its track."""

    table: int
    track: int
    start: int
    end: int


# What to shade in every curve: its name, from when, to when.
Span = tuple[str, int, int]


def draw(result: SimulationResult, folder: Path) -> list[Path]:
    """Draws all pictures into a folder and returns their paths. The run must have kept its history."""
    assert result.history is not None, "nothing was kept to draw"
    pictures = {
        folder / "staleness.png": _staleness(result, result.history),
        folder / "lag.png": _lag(result),
        folder / "tracks.png": _tracks(result, result.history),
    }
    for path, figure in pictures.items():
        save(figure, path)
    return list(pictures)


def save(figure: Figure, path: Path) -> None:
    """Writes a picture as PNG, into a folder that is made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise InputError(
            f"cannot draw into {path.parent}: {error.strerror}", "Name a folder that can be written"
        ) from error


@_names_as_written
def staleness_figure(curves: Sequence[Curve], end_us: int, title: str, spans: Sequence[Span] = ()) -> Figure:
    """A picture of every curve in axes of its own, against bound and target."""
    columns = min(_COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.5 * rows + 0.6), layout="constrained")
    unit_us, unit = _unit(end_us)
    colors = _span_colors(spans)
    for number, curve in enumerate(curves):
        axes = figure.add_subplot(rows, columns, number + 1)
        _shade(axes, spans, colors, unit_us)
        _draw_curve(axes, curve, unit_us)
        if number >= len(curves) - columns:
            axes.set_xlabel(f"time ({unit})")
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=_BOUND, label="proven bound"),
        Line2D([], [], color=_TARGET, linestyle="--", label="target"),
        Line2D([], [], color=_STALENESS, label="staleness"),
        *_span_handles(colors),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(title)
    return figure


def closeness(staleness_us: int, bound_us: int | None, target_us: int | None) -> float:
    """How close a table came to the nearer of its limits: 1 is at it. Without any it is looked at first."""
    limits = [limit for limit in (bound_us, target_us) if limit is not None]
    return staleness_us / min(limits) if limits else float("inf")


def _staleness(result: SimulationResult, history: History) -> Figure:
    chosen = sorted(range(len(result.tables)), key=lambda index: -_closeness(result.tables[index]))
    chosen = sorted(chosen[:CURVES_MAX])
    curves = [_curve(result.tables[index], history, index, result.end) for index in chosen]
    more = f" (the {len(chosen)} closest to their bounds)" if len(result.tables) > len(chosen) else ""
    title = f"{result.plan.warehouse.name}: staleness against bound and target{more}, seed {result.seed}"
    return staleness_figure(curves, result.end, title, spans_of(result.outages))


def spans_of(outages: Outages) -> list[Span]:
    """The outages as spans to shade; feeds that are down at the same time are named together."""
    together: dict[tuple[int, int], list[str]] = {}
    for feed, times in outages.items():
        for time in times:
            together.setdefault(time, []).append(feed)
    return [
        (f"{', '.join(feeds) if len(feeds) <= _FEEDS_NAMED else f'{len(feeds)} feeds'} down", begin, end)
        for (begin, end), feeds in sorted(together.items())
    ]


def _span_colors(spans: Sequence[Span]) -> dict[str, str]:
    names = dict.fromkeys(name for name, _, _ in spans)
    return {name: _SPANS[number % len(_SPANS)] for number, name in enumerate(names)}


def _span_handles(colors: Mapping[str, str]) -> list[Patch]:
    return [Patch(color=color, alpha=_SHADE, label=name) for name, color in colors.items()]


def _shade(axes: Axes, spans: Sequence[Span], colors: Mapping[str, str], unit_us: int) -> None:
    for name, begin, end in spans:
        axes.axvspan(begin / unit_us, end / unit_us, color=colors[name], alpha=_SHADE, linewidth=0)


def _closeness(table: TableResult) -> float:
    return closeness(table.staleness_max_us, table.plan.staleness_bound_us, table.plan.target_lag_us)


def _curve(table: TableResult, history: History, index: int, end: int) -> Curve:
    points = thinned(_points(history, index, end), end)
    return Curve(table.plan.name, points, table.plan.staleness_bound_us, table.plan.target_lag_us, end)


def _points(history: History, table: int, end: int) -> Iterator[tuple[int, int]]:
    """A table's (instant, staleness): it grows until a completion, and then falls at once."""
    yield 0, 0
    reached = 0
    for index, at, freshness in zip(history.tables, history.ends, history.freshness, strict=True):
        if index == table:
            yield at, at - reached
            yield at, at - freshness
            reached = freshness
    yield end, end - reached


def thinned(points: Iterable[tuple[int, int]], end_us: int) -> list[tuple[int, int]]:
    """As many points as can be told apart: of each pixel the first, the lowest, the highest and the last."""
    kept: list[tuple[int, int]] = []
    for _, pixel in groupby(points, key=lambda point: point[0] * _PIXELS // (end_us + 1)):
        here = list(pixel)
        heights = [height for _, height in here]
        chosen = {0, heights.index(min(heights)), heights.index(max(heights)), len(here) - 1}
        kept += [here[number] for number in sorted(chosen)]
    return kept


def _draw_curve(axes: Axes, curve: Curve, unit_us: int) -> None:
    highest_us = max((staleness for _, staleness in curve.points), default=0)
    height_us, height = _unit(max(highest_us, curve.bound_us or 0, curve.target_us or 0))
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


@_names_as_written
def lag_figure(
    runs: Mapping[str, SimulationResult], groups: Mapping[str, Sequence[str]], title: str
) -> Figure:
    """The lag TE − F of tables over time (paper 001, figure 9), a line for each table.

    Runs and groups of tables go by what they are called. A group has axes of its own in every run; several
    runs stand below each other, on the same scale, to be compared. They must have kept their histories.
    """
    columns = len(groups) if len(runs) > 1 else min(_COLUMNS, len(groups))
    rows = -(-len(runs) * len(groups) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.7 * rows + 0.6), layout="constrained")
    unit_us, unit = _unit(max(run.end for run in runs.values()))
    colors = _span_colors([span for run in runs.values() for span in spans_of(run.outages)])
    for column, (group, tables) in enumerate(groups.items()):
        lines = {name: _lag_lines(run, tables) for name, run in runs.items()}
        highest_us = max(lag for of_run in lines.values() for line in of_run for _, lag in line)
        for row, (name, run) in enumerate(runs.items()):
            number = row * len(groups) + column
            axes = figure.add_subplot(rows, columns, number + 1)
            _shade(axes, spans_of(run.outages), colors, unit_us)
            _draw_lags(axes, tables, lines[name], highest_us, unit_us)
            axes.set_xlim(0, run.end / unit_us)
            axes.set_title(f"{name}: {group}" if len(runs) > 1 else group, fontsize=10)
            if number >= len(runs) * len(groups) - columns:
                axes.set_xlabel(f"time ({unit})")
    if colors:
        figure.legend(handles=_span_handles(colors), loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(title)
    return figure


def _lag_lines(run: SimulationResult, tables: Sequence[str]) -> list[list[tuple[int, int]]]:
    index_of = {table.plan.name: index for index, table in enumerate(run.tables)}
    return [thinned(lag_points(run, index_of[table]), run.end) for table in tables]


def _draw_lags(
    axes: Axes,
    tables: Sequence[str],
    lines: Sequence[Sequence[tuple[int, int]]],
    highest_us: int,
    unit_us: int,
) -> None:
    height_us, height = _unit(highest_us)
    # The colours of the larger map come in pairs that are hard to tell apart.
    colors = colormaps["tab10" if len(tables) <= 10 else "tab20"]
    for number, (table, points) in enumerate(zip(tables, lines, strict=True)):
        axes.plot(
            [at / unit_us for at, _ in points],
            [lag / height_us for _, lag in points],
            linewidth=0.8,
            color=colors(number % _COLORS),
            label=table,
        )
    axes.set_ylim(0, 1.05 * highest_us / height_us or None)
    axes.set_ylabel(f"lag ({height})", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, loc="upper right")


def _lag(result: SimulationResult) -> Figure:
    """The tables that were furthest behind for their period; those of one period share axes."""
    chosen = sorted(result.tables, key=lambda table: -table.lag_max_us / table.plan.period_us)[:CURVES_MAX]
    groups: dict[str, list[str]] = {}
    for table in sorted(chosen, key=lambda table: table.plan.period_us):
        groups.setdefault(f"period {format_duration(table.plan.period_us)}", []).append(table.plan.name)
    more = f" (the {len(chosen)} furthest behind)" if len(result.tables) > len(chosen) else ""
    name = result.plan.warehouse.name
    return lag_figure({name: result}, groups, f"{name}: lag{more}, seed {result.seed}")


def first_bars(history: History, end: int) -> tuple[list[Bar], int]:
    """All jobs that started before some instant, on the tracks that are shown, and that instant.

    It is the end of the run, or early enough for the bars to be told apart.
    """
    starts = nsmallest(_BARS_MAX + 1, (bar.start for bar in _bars(history, end)))
    if len(starts) <= _BARS_MAX:
        return list(_bars(history, end)), end
    return [bar for bar in _bars(history, end) if bar.start < starts[-1]], starts[-1]


def _bars(history: History, end: int) -> Iterator[Bar]:
    for job in zip(history.tables, history.tracks, history.starts, history.ends, strict=True):
        if job[1] < _TRACKS_MAX:
            yield Bar(*job)
    for table, track, start in history.running:
        if track < _TRACKS_MAX:
            yield Bar(table, track, start, end)


@_names_as_written
def _tracks(result: SimulationResult, history: History) -> Figure:
    bars, until = first_bars(history, result.end)
    names = _track_names(result)
    tracks = min(len(names), _TRACKS_MAX)
    unit_us, unit = _unit(until)
    colors = colormaps["tab20"]
    figure = Figure(figsize=(12, 1.6 + 0.32 * tracks), layout="constrained")
    axes = figure.add_subplot()
    for bar in bars:
        axes.broken_barh(
            [(bar.start / unit_us, (bar.end - bar.start) / unit_us)],
            (bar.track - 0.4, 0.8),
            facecolor=colors(bar.table % _COLORS),
            linewidth=0,
        )
    axes.set_xlim(0, until / unit_us)
    axes.set_ylim(tracks - 0.5, -0.5)
    axes.set_yticks(range(tracks), names[:tracks], fontsize=8)
    axes.set_xlabel(f"time ({unit})")
    which = "the tracks" if tracks == len(names) else f"the first {tracks} of {len(names):,} tracks"
    axes.set_title(f"{result.plan.warehouse.name}: what {which} did in the first {format_duration(until)}")
    shown = sorted({bar.table for bar in bars})
    if len(shown) <= _COLORS:
        handles = [
            Patch(color=colors(index % _COLORS), label=result.tables[index].plan.name) for index in shown
        ]
        figure.legend(handles=handles, loc="outside right upper", fontsize=7)
    return figure


def _track_names(result: SimulationResult) -> list[str]:
    return [f"{pool.name} {number + 1}" for pool in result.pools for number in range(pool.tracks)]


def _unit(span_us: int) -> tuple[int, str]:
    for unit_us, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if span_us >= 2 * unit_us:
            return unit_us, name
    return SECOND, "seconds"
