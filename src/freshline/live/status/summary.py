"""What a run showed, at its end: observed staleness beside what was proven and asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from freshline.base.duration import format_duration
from freshline.base.printable import printable
from freshline.kernel.tables.state import exceeds
from freshline.live.status.screen_table import columns, count
from freshline.live.status.status import TableStatus, WarehouseStatus
from freshline.live.status.step_view import output_table, step_table
from freshline.live.status.view import class_table, query_table

_REASONS_MAX = 10


Verdict = Literal["exceeded", "above bound", "kept", "not loaded", "nothing came"]
_STYLES: Mapping[Verdict, str] = {
    "exceeded": "red",
    "above bound": "yellow",
    "kept": "green",
    "not loaded": "yellow",
    "nothing came": "dim",
}


def targets_exceeded(status: WarehouseStatus) -> int:
    """How many tables were staler than their target at any time of the run, or without a row for longer."""
    return sum(_exceeded(table, status.at_us) for table in status.tables)


def verdict(table: TableStatus) -> Verdict | None:
    """What there is to say of a table at the end of a run; nothing of one without a target that is well."""
    if exceeds(table.staleness_max_us, table.target_lag_us):
        return "exceeded"
    if table.freshness_us is None:
        return "nothing came" if table.came_us is None else "not loaded"
    if exceeds(table.staleness_max_us, table.staleness_bound_us):
        return "above bound"
    return None if table.target_lag_us is None else "kept"


def show_summary(
    screen: Console,
    status: WarehouseStatus,
    started_us: int,
    ended_us: int,
    asserted_max_us: Mapping[str, int | None] | None = None,
) -> None:
    """Prints, for every table, the worst staleness of the run against bound and target, and its work.

    `asserted_max_us` is, by table, the worst staleness while its bound was asserted; without it every bound
    counts as asserted throughout.
    """
    screen.print(
        f"{status.name} over {format_duration(ended_us - started_us)}",
        style="bold",
        highlight=False,
        markup=False,
    )
    table = columns(
        {
            "table": False,
            "staleness": True,
            "bound": True,
            "of bound": True,
            "target": True,
            "lag": True,
            "rows": True,
            "late": True,
            "jobs": True,
            "": False,
        }
    )
    for row in status.tables:
        observed_us, bound_us = row.staleness_max_us, row.staleness_bound_us
        table.add_row(
            Text(row.name),
            format_duration(observed_us),
            format_duration(bound_us, up=True),
            "-" if bound_us is None or observed_us is None else f"{observed_us / bound_us:.0%}",
            format_duration(row.target_lag_us),
            format_duration(row.lag_max_us),
            count(row.loaded_rows),
            count(row.late_rows),
            count(row.jobs),
            _shown(row, status.at_us),
        )
    if status.tables or not status.steps:
        screen.print(table)
    if status.steps:
        screen.print(output_table(status.outputs))
        screen.print(step_table(status.steps))
    if status.queries:
        screen.print(query_table(status.queries))
    if status.classes:
        screen.print(class_table(status.classes))
    if asserted_max_us is None:
        asserted_max_us = {table.name: table.staleness_max_us for table in status.tables}
    _show_targets(screen, status)
    _show_reasons(screen, status, asserted_max_us)
    _show_recoveries(screen, status)


def draw_summary(
    samples: Mapping[str, Sequence[tuple[int, int]]],
    status: WarehouseStatus,
    path: Path,
    spans: Sequence[tuple[str, int, int]] = (),
) -> Path:
    """Draws each table's (instant, staleness) samples against bound and target, as PNG.

    A span (what, from, to), such as ("packets down", ...), is shaded in every table's axes: the tables that
    an outage leaves alone are half of what there is to see.
    """
    # matplotlib is slow to import
    from freshline.pictures.figures import CURVES_MAX, save
    from freshline.pictures.staleness import Curve, closeness, staleness_figure

    def urgency(table: TableStatus) -> float:
        highest_us = max((staleness for _, staleness in samples.get(table.name, ())), default=0)
        return -closeness(highest_us, table.staleness_bound_us, table.target_lag_us)

    kept = {table.name for table in sorted(status.tables, key=urgency)[:CURVES_MAX]}
    begin_us, end_us = status.started_us, status.at_us - status.started_us
    curves = [
        Curve(
            table.name,
            [(at_us - begin_us, staleness_us) for at_us, staleness_us in samples.get(table.name, ())],
            table.staleness_bound_us,
            table.target_lag_us,
            end_us,
        )
        for table in status.tables
        if table.name in kept
    ]
    more = f" (the {len(curves)} closest to their bounds)" if len(status.tables) > len(curves) else ""
    title = f"{status.name}: staleness against bound and target{more}"
    shaded = [(what, from_us - begin_us, to_us - begin_us) for what, from_us, to_us in spans]
    save(staleness_figure(curves, end_us, title, shaded), path)
    return path


def _exceeded(table: TableStatus, at_us: int) -> bool:
    observed_us = table.unloaded_us(at_us) if table.freshness_us is None else table.staleness_max_us
    return exceeds(observed_us, table.target_lag_us)


def _shown(table: TableStatus, at_us: int) -> Text:
    word = verdict(table)
    return Text() if word is None else Text(word, "red" if _exceeded(table, at_us) else _STYLES[word])


def _show_recoveries(screen: Console, status: WarehouseStatus) -> None:
    if status.recoveries:
        count_all = len(status.recoveries)
        some = f" ({_REASONS_MAX} of {count_all})" if count_all > _REASONS_MAX else ""
        screen.print(f"Recoveries{some}:", highlight=False)
        for sentence in status.recoveries[:_REASONS_MAX]:
            screen.print(f"  - {printable(sentence)}", highlight=False, markup=False)


def _show_targets(screen: Console, status: WarehouseStatus) -> None:
    exceeded = targets_exceeded(status)
    targeted = [table for table in status.tables if table.target_lag_us is not None]
    unloaded = sum(table.freshness_us is None for table in targeted)
    targets = len(targeted)
    if exceeded:
        screen.print(f"[red]Exceeded[/]: {exceeded} of {targets} targets.", highlight=False)
    elif targets > unloaded:
        screen.print(f"[green]Kept[/]: no target of {targets - unloaded} was exceeded.", highlight=False)
    if unloaded:
        tables = f"{unloaded} of {targets} {'table' if targets == 1 else 'tables'}"
        screen.print(f"[yellow]Not loaded[/]: {tables} with a target.", highlight=False)


def _show_reasons(
    screen: Console, status: WarehouseStatus, asserted_max_us: Mapping[str, int | None]
) -> None:
    """A bound is proven on assumptions: either one of them broke, or the proof or its implementation did.

    It is asserted once the table is fresh: what had piled up when the run began broke nothing.
    """
    above = [
        table
        for table in status.tables
        if exceeds(table.staleness_max_us, table.staleness_bound_us) and not table.expected
    ]
    wrong = [table.name for table in above if exceeds(asserted_max_us[table.name], table.staleness_bound_us)]
    if status.broken_assumptions:
        count_all = len(status.broken_assumptions)
        last = f" (the last {_REASONS_MAX} of {count_all})" if count_all > _REASONS_MAX else ""
        screen.print(f"Assumptions that did not hold{last}:", highlight=False)
        for sentence in status.broken_assumptions[-_REASONS_MAX:]:
            screen.print(f"  - {printable(sentence)}", highlight=False, markup=False)
    elif wrong:
        screen.print(
            f"A proven bound was exceeded while every assumption held: {', '.join(wrong)}. "
            "This is a bug of Freshline: please report it, with the event log.",
            style="red",
            highlight=False,
            markup=False,
        )
    elif above:
        screen.print(
            f"Above the bound, but not since first fresh in this run: {', '.join(t.name for t in above)}.",
            highlight=False,
            markup=False,
        )
