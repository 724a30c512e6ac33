"""Pictures of a simulated run: staleness against its bound, lag, and the jobs on the tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from freshline.base.duration import format_duration
from freshline.pictures.bars import TRACKS_MAX, first_bars
from freshline.pictures.figures import CURVES_MAX, Span, save, thinned
from freshline.pictures.lag import Lags, lag_figure
from freshline.pictures.staleness import Curve, closeness, staleness_figure
from freshline.pictures.tracks import tracks_figure
from freshline.simulation.conditions.outages import Outages
from freshline.simulation.job_records import JobRecords
from freshline.simulation.lag import lag_points
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.tables import TableResult

_FEEDS_NAMED = 4


def draw(result: SimulationResult, folder: Path) -> list[Path]:
    """Draws all pictures into a folder and returns their paths. The run must have kept its records."""
    assert result.records is not None, "nothing was kept to draw"
    pictures = {
        folder / "staleness.png": _staleness(result, result.records),
        folder / "lag.png": _lag(result),
        folder / "tracks.png": _tracks(result, result.records),
    }
    for path, figure in pictures.items():
        save(figure, path)
    return list(pictures)


def lags(result: SimulationResult, groups: Mapping[str, Sequence[str]]) -> Lags:
    """The lags of groups of tables, by name of the group. The run must have kept its records."""
    lines = {
        group: {table: thinned(lag_points(result, table), result.end) for table in tables}
        for group, tables in groups.items()
    }
    return Lags(lines, result.end, spans_of(result.outages))


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


def _staleness(result: SimulationResult, records: JobRecords) -> Figure:
    closest = {table.plan.name for table in sorted(result.tables, key=_closeness, reverse=True)[:CURVES_MAX]}
    curves = [_curve(table, records, result.end) for table in result.tables if table.plan.name in closest]
    more = f" (the {len(curves)} closest to their bounds)" if len(result.tables) > len(curves) else ""
    title = f"{result.plan.warehouse.name}: staleness against bound and target{more}, seed {result.seed}"
    return staleness_figure(curves, result.end, title, spans_of(result.outages))


def _closeness(table: TableResult) -> float:
    return closeness(table.staleness_max_us, table.plan.staleness_bound_us, table.plan.target_lag_us)


def _curve(table: TableResult, records: JobRecords, end: int) -> Curve:
    points = thinned(records.staleness(table.plan.name, end), end)
    return Curve(table.plan.name, points, table.plan.staleness_bound_us, table.plan.target_lag_us, end)


def _lag(result: SimulationResult) -> Figure:
    """The tables that were furthest behind for their period; those of one period share axes."""
    chosen = sorted(result.tables, key=lambda table: -table.lag_max_us / table.plan.period_us)[:CURVES_MAX]
    groups: dict[str, list[str]] = {}
    for table in sorted(chosen, key=lambda table: table.plan.period_us):
        groups.setdefault(f"period {format_duration(table.plan.period_us)}", []).append(table.plan.name)
    more = f" (the {len(chosen)} furthest behind)" if len(result.tables) > len(chosen) else ""
    name = result.plan.warehouse.name
    return lag_figure({name: lags(result, groups)}, f"{name}: lag{more}, seed {result.seed}")


def _tracks(result: SimulationResult, records: JobRecords) -> Figure:
    bars, until = first_bars(records.bars, result.end)
    names = [f"{pool.name} {number + 1}" for pool in result.pools for number in range(pool.tracks)]
    which = "the tracks" if len(names) <= TRACKS_MAX else f"the first {TRACKS_MAX} of {len(names):,} tracks"
    title = f"{result.plan.warehouse.name}: what {which} did in the first {format_duration(until)}"
    tasks = [table.plan.name for table in result.tables]
    return tracks_figure(bars, names, tasks, until, title)
