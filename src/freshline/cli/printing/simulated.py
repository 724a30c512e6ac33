"""The results of a simulated run: as JSON, and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.grid import grid, listed, tell
from freshline.cli.printing.kinds import PRINTED
from freshline.cli.printing.pools import pool_record
from freshline.planning.plan.advice import counted
from freshline.simulation.conditions.spans import Spans
from freshline.simulation.kind import SectionResult
from freshline.simulation.simulate import PoolResult, SimulationResult

_REASONS_MAX = 5


def simulated_record(result: SimulationResult) -> dict[str, Any]:
    busy = {pool.name: pool.busy for pool in result.pools}
    record: dict[str, Any] = {
        "holds": result.holds,
        "seed": result.seed,
        "for": seconds(result.end),
        "outages": _span_records(result.outages),
        "gaps": _span_records(result.gaps),
        "slow": {table: float(factor) for table, factor in result.slow.items()},
        "failures": {table: float(rate) for table, rate in result.failures.items()},
        "crashes": [{"start": seconds(start), "end": seconds(back)} for start, back in result.crashes],
        "node_crashes": _span_records(result.node_crashes, "node"),
        "pools": [
            {**pool_record(result.plan, pool), "tracks_busy": round(busy[pool.name], 6)}
            for pool in result.plan.pools
        ],
    }
    for kind in PRINTED:
        record |= kind.result_record(result)
    return record | {name: [row.record() for row in rows] for name, rows in _sections(result).items()}


def _sections(result: SimulationResult) -> dict[str, list[SectionResult]]:
    """By section, the results that say themselves how they are shown."""
    sections: dict[str, list[SectionResult]] = {}
    for row in result.of(SectionResult):
        sections.setdefault(row.section, []).append(row)
    return sections


def _show_sections(screen: Console, result: SimulationResult) -> None:
    for name, rows in _sections(result).items():
        shown = [row.shown() for row in rows]
        titles = list(dict.fromkeys(column for row in shown for column in row))
        table = grid(name, *titles[:1], *(f">{title}" for title in titles[1:-1]), *titles[1:][-1:])
        for row in shown:
            table.add_row(*(row.get(column, "") for column in titles))
        screen.print(table)
        screen.print()


def _span_records(spans: Mapping[str, Spans], of: str = "feed") -> list[dict[str, Any]]:
    return [
        {of: feed, "start": seconds(start), "end": seconds(end)}
        for feed, times in spans.items()
        for start, end in times
    ]


def show_simulated(screen: Console, result: SimulationResult, pictures: list[Path], all_rows: bool) -> None:
    for kind in PRINTED:
        kind.show_result(screen, result, all_rows)
    _show_sections(screen, result)
    for pool, planned in zip(result.pools, result.plan.pools, strict=True):
        tell(
            screen,
            f"Pool {pool.name}: {pool.busy:.2f} of {pool.tracks} tracks busy on average "
            f"(worst case {planned.utilization:.2f}), policy {planned.policy}.",
        )
        _show_given_up(screen, pool)
    _show_what_if(screen, result)
    for picture in pictures:
        screen.print(f"Drawn: {picture}", highlight=False, markup=False, soft_wrap=True)
    _show_verdict(screen, result)


def _show_verdict(screen: Console, result: SimulationResult) -> None:
    for kind in PRINTED:
        line = kind.missed(result)
        if line is not None:
            screen.print(line, highlight=False)
    for rows in _sections(result).values():
        worse = sum(not row.holds for row in rows)
        if worse:
            screen.print(f"[red]Exceeded[/]: {worse} {rows[0].promise}.", highlight=False)


def _show_given_up(screen: Console, pool: PoolResult) -> None:
    if pool.given_up:
        # Each reason appears once, with its count.
        times = Counter(reason for _, reason in pool.given_up).most_common()
        reasons = listed([f"{reason} ({number})" for reason, number in times], _REASONS_MAX)
        certificates = counted(len(pool.given_up), "certificate")
        tell(screen, f"Pool {pool.name}: {certificates} given up: {reasons}.")


def _show_what_if(screen: Console, result: SimulationResult) -> None:
    for what, by_feed in (("down", result.outages), ("without rows", result.gaps)):
        for feed, times in by_feed.items():
            spans = ", ".join(f"{format_duration(start)} to {format_duration(end)}" for start, end in times)
            tell(screen, f"Feed {feed} {what}: {spans}.")
    for name, factor in result.slow.items():
        warehouse = result.plan.warehouse
        whose = "Table" if name in warehouse.stored else "Query" if name in warehouse.queries else "Class"
        tell(screen, f"{whose} {name}: costs multiplied by {float(factor):g}.")
    counted = [(row.plan.name, row.failed, row.jobs) for row in result.tables]
    counted += [(step.name, step.failed, step.jobs) for step in result.steps]
    for name, failed, jobs in counted:
        if name in result.failures:
            tell(screen, f"Table {name}: {failed} of {jobs + failed} jobs failed.")
    for start, back in result.crashes:
        tell(screen, f"The runner was down: {format_duration(start)} to {format_duration(back)}.")
    for node, times in result.node_crashes.items():
        spans = ", ".join(f"{format_duration(start)} to {format_duration(end)}" for start, end in times)
        tell(screen, f"Node {node} was down: {spans}.")
