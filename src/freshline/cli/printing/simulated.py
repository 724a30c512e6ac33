"""The results of a simulated run: as JSON, and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.outputs import show_simulated_outputs, simulated_records
from freshline.cli.printing.queries import show_simulated_queries, simulated_query_record
from freshline.cli.shared import ROWS_MAX, grid, pool_record, show_rest, table_record
from freshline.kernel.recovery.terms import Recovery
from freshline.planning.plan.advice import counted
from freshline.simulation.conditions.spans import Spans
from freshline.simulation.kind import SectionResult
from freshline.simulation.simulate import PoolResult, SimulationResult
from freshline.simulation.tables import TableResult

_REASONS_MAX = 5


def simulated_record(result: SimulationResult) -> dict[str, Any]:
    busy = {pool.name: pool.busy for pool in result.pools}
    plan = result.plan
    return {
        "holds": result.holds,
        "seed": result.seed,
        "for": seconds(result.end),
        "outages": _span_records(result.outages),
        "gaps": _span_records(result.gaps),
        "slow": {table: float(factor) for table, factor in result.slow.items()},
        "failures": {table: float(rate) for table, rate in result.failures.items()},
        "crashes": [{"start": seconds(start), "end": seconds(back)} for start, back in result.crashes],
        "pools": [
            {**pool_record(pool, plan.tables), "tracks_busy": round(busy[pool.name], 6)}
            for pool in plan.pools
        ],
        "tables": [
            {
                **table_record(plan, table.plan),
                "staleness_max": seconds(table.staleness_max_us),
                "lag_max": seconds(table.lag_max_us),
                "jobs": table.jobs,
                "misses": table.misses,
                "failed": table.failed,
                "state": table.state,
                "recovered_at": seconds(table.recovered_at_us),
                "recovery": _recovery_record(table.recovery),
            }
            for table in result.tables
        ],
        **simulated_records(result),
        **(
            {"queries": [simulated_query_record(query) for query in result.queries]} if result.queries else {}
        ),
        **({"requests": None} if plan.warehouse.classes else {}),
        **{name: [row.record() for row in rows] for name, rows in _sections(result).items()},
    }


def _sections(result: SimulationResult) -> dict[str, list[SectionResult]]:
    """By section, the results that say themselves how they are shown."""
    sections: dict[str, list[SectionResult]] = {}
    for row in result.of(SectionResult):
        sections.setdefault(row.section, []).append(row)
    return sections


def _show_sections(screen: Console, result: SimulationResult) -> None:
    for name, rows in _sections(result).items():
        shown = [row.shown() for row in rows]
        columns = list(dict.fromkeys(column for row in shown for column in row))
        table = grid(name, {column: 0 < place < len(columns) - 1 for place, column in enumerate(columns)})
        for row in shown:
            table.add_row(*(row.get(column, "") for column in columns))
        screen.print(table)
        screen.print()


def _span_records(spans: Mapping[str, Spans]) -> list[dict[str, Any]]:
    return [
        {"feed": feed, "start": seconds(start), "end": seconds(end)}
        for feed, times in spans.items()
        for start, end in times
    ]


def _recovery_record(recovery: Recovery | None) -> dict[str, Any] | None:
    if recovery is None:
        return None
    return {
        "entered": seconds(recovery.entered),
        "due": seconds(recovery.due),
        "ended": seconds(recovery.ended),
        "in_time": recovery.in_time,
    }


def show_simulated(screen: Console, result: SimulationResult, pictures: list[Path], all_rows: bool) -> None:
    rows = list(result.tables)
    if not all_rows and len(rows) > ROWS_MAX:
        rows = sorted(rows, key=_urgency)[:ROWS_MAX]
    changed = bool(result.outages or result.gaps or result.slow or result.failures or result.crashes)
    table = grid(
        f"{result.plan.warehouse.name} over {format_duration(result.end)}, seed {result.seed}",
        {
            "table": False,
            "staleness": True,
            "bound": True,
            "of bound": True,
            "target": True,
            "lag": True,
            "jobs": True,
            "misses": True,
            **({"recovered at": True, "state": False} if changed else {}),
            "": False,
        },
    )
    for row in rows:
        bound_us, target_us = row.plan.staleness_bound_us, row.plan.target_lag_us
        verdict = (
            "[red]exceeded[/]" if row.exceeded_target else "[green]kept[/]" if target_us is not None else ""
        )
        table.add_row(
            row.plan.name,
            format_duration(row.staleness_max_us),
            format_duration(bound_us, up=True),
            "-" if bound_us is None else f"{row.staleness_max_us / bound_us:.0%}",
            format_duration(target_us),
            format_duration(row.lag_max_us),
            str(row.jobs),
            str(row.misses),
            *((format_duration(row.recovered_at_us), row.state) if changed else ()),
            verdict,
        )
    if result.tables:
        screen.print(table)
        show_rest(screen, len(result.tables), all_rows)
        screen.print()
    if result.steps:
        show_simulated_outputs(screen, result, all_rows)
    if result.queries:
        show_simulated_queries(screen, result.queries, all_rows)
    _show_sections(screen, result)
    for pool, planned in zip(result.pools, result.plan.pools, strict=True):
        screen.print(
            f"Pool {pool.name}: {pool.busy:.2f} of {pool.tracks} tracks busy on average "
            f"(worst case {planned.utilization:.2f}), policy {planned.policy}.",
            highlight=False,
            markup=False,
        )
        _show_given_up(screen, pool)
    _show_what_if(screen, result)
    for picture in pictures:
        screen.print(f"Drawn: {picture}", highlight=False, markup=False, soft_wrap=True)
    _show_verdict(screen, result, changed)


def _show_verdict(screen: Console, result: SimulationResult, changed: bool) -> None:
    exceeded = sum(row.exceeded_target for row in result.tables)
    if exceeded:
        # The plan does not know about simulated faults.
        advice = "" if changed else " `freshline plan` says what would help."
        screen.print(f"[red]Exceeded[/]: {exceeded} targets.{advice}", highlight=False)
    else:
        screen.print("[green]Kept[/]: no target was exceeded.", highlight=False)
    missed = sum(output.misses > 0 for output in result.outputs)
    if missed:
        screen.print(f"[red]Missed[/]: deadlines of {missed} of the outputs.", highlight=False)
    late = sum(query.misses > 0 for query in result.queries)
    if late:
        screen.print(f"[red]Missed[/]: deadlines of {late} of the queries.", highlight=False)
    for rows in _sections(result).values():
        worse = sum(not row.holds for row in rows)
        if worse:
            screen.print(f"[red]Exceeded[/]: {worse} {rows[0].promise}.", highlight=False)


def _show_given_up(screen: Console, pool: PoolResult) -> None:
    if pool.given_up:
        # Each reason appears once, with its count.
        times = Counter(reason for _, reason in pool.given_up)
        reasons = ", ".join(f"{reason} ({number})" for reason, number in times.most_common(_REASONS_MAX))
        more = f" and {len(times) - _REASONS_MAX} more" if len(times) > _REASONS_MAX else ""
        certificates = counted(len(pool.given_up), "certificate")
        screen.print(
            f"Pool {pool.name}: {certificates} given up: {reasons}{more}.", highlight=False, markup=False
        )


def _show_what_if(screen: Console, result: SimulationResult) -> None:
    for what, by_feed in (("down", result.outages), ("without rows", result.gaps)):
        for feed, times in by_feed.items():
            spans = ", ".join(f"{format_duration(start)} to {format_duration(end)}" for start, end in times)
            screen.print(f"Feed {feed} {what}: {spans}.", highlight=False, markup=False)
    for name, factor in result.slow.items():
        warehouse = result.plan.warehouse
        whose = "Table" if name in warehouse.stored else "Query" if name in warehouse.queries else "Class"
        screen.print(f"{whose} {name}: costs multiplied by {float(factor):g}.", highlight=False, markup=False)
    counted = [(row.plan.name, row.failed, row.jobs) for row in result.tables]
    counted += [(step.name, step.failed, step.jobs) for step in result.steps]
    for name, failed, jobs in counted:
        if name in result.failures:
            said = f"Table {name}: {failed} of {jobs + failed} jobs failed."
            screen.print(said, highlight=False, markup=False)
    for start, back in result.crashes:
        said = f"The runner was down: {format_duration(start)} to {format_duration(back)}."
        screen.print(said, highlight=False, markup=False)


def _urgency(row: TableResult) -> tuple[bool, float]:
    """Exceeded targets first, then the tables closest to their bounds."""
    bound_us = row.plan.staleness_bound_us
    return (not row.exceeded_target, -row.staleness_max_us / bound_us if bound_us else 0.0)
