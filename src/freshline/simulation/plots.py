"""Pictures of a run: staleness against its bound, and what the tracks did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from freshline.definitions.duration import DAY, HOUR, MINUTE, SECOND, format_duration
from freshline.definitions.errors import InputError
from freshline.simulation.observation import History
from freshline.simulation.simulate import SimulationResult, TableResult

# More would not be told apart on a page.
_TABLES_MAX = 12
_TEETH_MAX = 3_000
_BARS_MAX = 300
_COLORS = 20
_STALENESS, _BOUND, _TARGET = "#1f77b4", "#d62728", "#2ca02c"


def draw(result: SimulationResult, folder: Path) -> list[Path]:
    """Draws both pictures into a folder and returns their paths. The run must have kept its history."""
    assert result.history is not None, "nothing was kept to draw"
    pictures = {
        "staleness.png": _staleness(result, result.history),
        "tracks.png": _tracks(result, result.history),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in pictures.items():
            figure.savefig(folder / name, dpi=110)
    except OSError as error:
        raise InputError(
            f"cannot draw into {folder}: {error.strerror}", "Name a folder that can be written"
        ) from error
    return [folder / name for name in pictures]


def _staleness(result: SimulationResult, history: History) -> Figure:
    chosen = sorted(range(len(result.tables)), key=lambda index: -_closeness(result.tables[index]))[
        :_TABLES_MAX
    ]
    chosen.sort()
    teeth = _teeth(history, set(chosen))
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.5 * rows + 0.6), layout="constrained")
    unit_us, unit = _unit(result.end)
    for number, index in enumerate(chosen):
        axes = figure.add_subplot(rows, columns, number + 1)
        _draw_teeth(axes, result.tables[index], teeth.get(index, []), result.end, unit_us)
        if number >= len(chosen) - columns:
            axes.set_xlabel(f"time ({unit})")
    handles = [
        Line2D([], [], color=_BOUND, label="proven bound"),
        Line2D([], [], color=_TARGET, linestyle="--", label="target"),
        Line2D([], [], color=_STALENESS, label="staleness"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    more = f" (the {len(chosen)} closest to their bounds)" if len(result.tables) > len(chosen) else ""
    figure.suptitle(
        f"{result.plan.warehouse.name}: staleness against bound and target{more}, seed {result.seed}"
    )
    return figure


def _closeness(table: TableResult) -> float:
    limits = [
        limit for limit in (table.plan.staleness_bound_us, table.plan.target_lag_us) if limit is not None
    ]
    return table.staleness_us_max / min(limits) if limits else float("inf")


def _teeth(history: History, tables: set[int]) -> dict[int, list[tuple[int, int]]]:
    """For each table its (completion, freshness reached), the first ones of a long run."""
    teeth: dict[int, list[tuple[int, int]]] = {index: [] for index in tables}
    for index, end, freshness in zip(history.tables, history.ends, history.freshness, strict=True):
        if index in tables and len(teeth[index]) < _TEETH_MAX:
            teeth[index].append((end, freshness))
    return teeth


def _draw_teeth(axes: Axes, table: TableResult, teeth: list[tuple[int, int]], end: int, unit_us: int) -> None:
    plan = table.plan
    height_us, height = _unit(
        max(table.staleness_us_max, plan.staleness_bound_us or 0, plan.target_lag_us or 0)
    )
    times, staleness = [0.0], [0.0]
    fresh = 0
    last = end if len(teeth) < _TEETH_MAX else teeth[-1][0]
    for at, freshness in [*teeth, (last, -1)]:
        times.append(at / unit_us)
        staleness.append((at - fresh) / height_us)
        if freshness >= 0:
            fresh = freshness
            times.append(at / unit_us)
            staleness.append((at - fresh) / height_us)
    axes.plot(times, staleness, linewidth=0.7, color=_STALENESS)
    if plan.staleness_bound_us is not None:
        axes.axhline(plan.staleness_bound_us / height_us, color=_BOUND, linewidth=1.2)
    if plan.target_lag_us is not None:
        axes.axhline(plan.target_lag_us / height_us, color=_TARGET, linewidth=1.2, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, last / unit_us)
    axes.set_title(plan.name, fontsize=10)
    axes.set_ylabel(height, fontsize=8)
    axes.tick_params(labelsize=8)


def _tracks(result: SimulationResult, history: History) -> Figure:
    count = min(_BARS_MAX, len(history.ends))
    until = history.ends[count - 1] if count else result.end
    tracks = sum(pool.tracks for pool in result.pools)
    unit_us, unit = _unit(until)
    colors = colormaps["tab20"]
    figure = Figure(figsize=(12, 1.6 + 0.32 * min(tracks, 60)), layout="constrained")
    axes = figure.add_subplot()
    for bar in range(count):
        start, end = history.starts[bar], history.ends[bar]
        axes.broken_barh(
            [(start / unit_us, (end - start) / unit_us)],
            (history.tracks[bar] - 0.4, 0.8),
            facecolor=colors(history.tables[bar] % _COLORS),
            linewidth=0,
        )
    axes.set_xlim(0, until / unit_us)
    axes.set_ylim(tracks - 0.5, -0.5)
    axes.set_yticks(range(tracks), _track_names(result), fontsize=8)
    axes.set_xlabel(f"time ({unit})")
    axes.set_title(f"{result.plan.warehouse.name}: what the tracks did in the first {format_duration(until)}")
    shown = sorted(set(history.tables[:count]))
    if len(shown) <= _COLORS:
        handles = [
            Patch(color=colors(index % _COLORS), label=result.tables[index].plan.name) for index in shown
        ]
        figure.legend(handles=handles, loc="outside right upper", fontsize=7)
    return figure


def _track_names(result: SimulationResult) -> Iterable[str]:
    return [f"{pool.name} {number + 1}" for pool in result.pools for number in range(pool.tracks)]


def _unit(span_us: int) -> tuple[int, str]:
    for unit_us, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if span_us >= 2 * unit_us:
            return unit_us, name
    return SECOND, "seconds"
