"""A running warehouse on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freshline.base.duration import DAY, format_duration
from freshline.base.instants import utc
from freshline.base.printable import printable
from freshline.kernel.tables.state import TableState, exceeds
from freshline.live.status.screen_table import columns, count
from freshline.live.status.status import (
    ClassStatus,
    Progress,
    QueryState,
    QueryStatus,
    TableStatus,
    TrackStatus,
    WarehouseStatus,
)
from freshline.live.status.step_view import output_table, step_table

TABLES_MAX = 25
_TRACKS_MAX = 12
_LINES_MAX = 5  # of messages and of broken assumptions

# From the most troubled to the least.
STYLES: Mapping[TableState, str] = {
    "FAILED": "bold red",
    "UPSTREAM_FAILED": "red",
    "LATE": "red",
    "SILENT": "magenta",
    "RECOVERING": "cyan",
    "BEHIND": "yellow",
    "EMPTY": "dim",
    "HEALTHY": "green",
}
_QUERY_STYLES: Mapping[QueryState, str] = {
    "RUNNING": "green",
    "COMING": "cyan",
    "LEAVING": "dim",
    "REFUSED": "bold red",
    "ENDED": "dim",
}
_CLASS_STYLES: Mapping[str, str] = {
    "KEPT": "green",
    "SETTLING": "yellow",
    "BROKEN": "bold red",
    "IDLE": "dim",
}
_URGENCY = {state: number for number, state in enumerate(STYLES)}


def render(status: WarehouseStatus, now_us: int, running: bool = True) -> RenderableType:
    """The warehouse as it was at `status.at_us`, with staleness as of now.

    Not `running`: the runner has gone; then staleness is as of its last word, and the heading says how old
    that is.
    """
    as_of_us = now_us if running else status.at_us
    parts: list[RenderableType] = [_heading(status, now_us, running)]
    if status.starting is not None:
        parts.append(_starting(status.starting, running))
    if status.placement is not None:
        parts += [_sentence(each) for each in status.placement.shortcomings]
    if status.is_opening:
        return Group(*parts)
    if status.outputs:
        parts += [Text(), output_table(status.outputs)]
    if status.steps:
        parts += [Text(), step_table(status.steps)]
    if status.tables or not status.steps:
        parts += [Text(), _tables(status, as_of_us)]
    if len(status.tables) > TABLES_MAX:
        parts.append(Text(f"... and {len(status.tables) - TABLES_MAX} more, less troubled.", style="dim"))
    if status.queries:
        parts += [Text(), query_table(status.queries)]
        if len(status.queries) > TABLES_MAX:
            parts.append(Text(f"... and {len(status.queries) - TABLES_MAX} more queries.", style="dim"))
    if status.classes:
        parts += [Text(), class_table(status.classes)]
    parts += [
        _line(f"Pool {pool.name} ({pool.policy}): no bound: behaves as {pool.behaves_as}.", "yellow")
        for pool in status.pools
        if pool.behaves_as != pool.policy
    ]
    messages = [f"{table.name}: {table.message}" for table in _shown(status, as_of_us) if table.message]
    messages += [f"{step.name}: {step.message}" for step in status.steps if step.message]
    messages += [f"{query.name}: {query.message}" for query in status.queries if query.message]
    parts += _lines("Messages", messages[:_LINES_MAX], "red")
    parts += _lines("Left out", _left_out(status)[:_LINES_MAX], "cyan")
    parts += _lines("Recoveries", status.recoveries[:_LINES_MAX], "cyan")
    if running:
        parts += [Text(), _tracks(status.tracks, now_us)]
    parts += _lines("Broken assumptions", status.broken_assumptions[-_LINES_MAX:], "yellow")
    late = [f"{query.name}: {query.missed_because}" for query in status.queries if query.missed_because]
    parts += _lines("Missed deadlines", late[:_LINES_MAX], "red")
    if status.quarantined:
        files = "1 file is" if status.quarantined == 1 else f"{status.quarantined} files are"
        parts += [Text(), _line(f"{files} in quarantine: `freshline quarantine list` says why.", "yellow")]
    return Group(*parts)


def _heading(status: WarehouseStatus, now_us: int, running: bool) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(status.name, style="bold")
    if running:
        up = format_duration(now_us - status.started_us)
        line.append(f" at {utc(now_us):%H:%M:%S} UTC, up {up}, process {status.pid} on {status.host}")
    else:
        line.append(" is not running", style="bold red")
        age = format_duration(now_us - status.at_us)
        line.append(f": figures of {age} ago, {utc(status.at_us):%Y-%m-%d %H:%M:%S} UTC")
    return line


def _starting(progress: Progress, running: bool) -> Text:
    return _line(f"Starting: {progress}." if running else f"It ended while it started: {progress}.", "cyan")


def _tables(status: WarehouseStatus, now_us: int) -> Table:
    table = columns(
        {
            "table": False,
            "state": False,
            "freshness": True,
            "lag": True,
            "staleness": True,
            "bound": True,
            "target": True,
            "backlog": True,
            "rows": True,
        }
    )
    for row in _shown(status, now_us):
        table.add_row(
            Text(row.name),
            Text(row.state, style=STYLES[row.state]),
            "-" if row.freshness_us is None else _time(row.freshness_us, now_us),
            format_duration(row.lag_us),
            _staleness(row, now_us),
            format_duration(row.staleness_bound_us, up=True),
            format_duration(row.target_lag_us),
            str(row.backlog),
            count(row.loaded_rows),
        )
    return table


def query_table(queries: Sequence[QueryStatus]) -> Table:
    """The queries, as they are now."""
    names = {"query": False, "state": False, "stride": True, "deadline": True, "budget": True}
    table = columns(names | {"answers": True, "missed": True, "keep": True, "mean": True})
    for row in queries[:TABLES_MAX]:
        table.add_row(
            Text(row.name),
            Text(row.state, style=_QUERY_STYLES[row.state]),
            format_duration(row.stride_us),
            format_duration(row.deadline_us),
            format_duration(row.budget_us),
            count(row.iterations),
            Text(count(row.misses), style="red" if row.misses else ""),
            _percent(row.keep),
            _percent(row.keep_mean),
        )
    return table


def class_table(classes: Sequence[ClassStatus]) -> Table:
    """The service classes, as they are now."""
    names = {
        "class": False,
        "state": False,
        "error": True,
        "allowed": True,
        "admitted": True,
        "quota": True,
        "waiting": True,
    }
    table = columns(names | {"answers": True, "mean": True, "rejected": True, "unanswered": True})
    for row in classes:
        table.add_row(
            Text(row.name),
            Text(row.state, style=_CLASS_STYLES[row.state]),
            _percent(row.ate),
            _percent(row.error),
            _percent(row.admitted),
            _percent(row.quota),
            count(row.waiting),
            count(row.answered),
            _percent(row.error_mean),
            count(row.rejected),
            count(row.unanswered),
        )
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _shown(status: WarehouseStatus, now_us: int) -> Sequence[TableStatus]:
    # Rows that change places are hard to follow: they are sorted only where some must be left out.
    if len(status.tables) <= TABLES_MAX:
        return status.tables
    return sorted(status.tables, key=lambda table: (not table.misses_target(now_us), _URGENCY[table.state]))[
        :TABLES_MAX
    ]


def _staleness(table: TableStatus, now_us: int) -> Text:
    staleness_us = table.staleness_us(now_us)
    style = ""
    if table.misses_target(now_us):
        style = "red"
    elif exceeds(staleness_us, table.staleness_bound_us):
        style = "yellow"
    return Text(format_duration(staleness_us), style=style)


def _time(at_us: int, now_us: int) -> str:
    return f"{utc(at_us):%H:%M:%S}" if now_us - at_us < DAY else f"{utc(at_us):%m-%d %H:%M}"


def _tracks(tracks: Sequence[TrackStatus], now_us: int) -> RenderableType:
    table = columns({"track": True, "pool": False, "runs": False, "since": True})
    busy_first = sorted(tracks, key=lambda track: track.table is None)
    for track in tracks if len(tracks) <= _TRACKS_MAX else busy_first[:_TRACKS_MAX]:
        since = "" if track.since_us is None else format_duration(max(0, now_us - track.since_us))
        runs = Text("idle", style="dim") if track.table is None else Text(track.table)
        table.add_row(str(track.number), Text(track.pool), runs, since)
    if len(tracks) <= _TRACKS_MAX:
        return table
    busy = sum(track.table is not None for track in tracks)
    return Group(table, Text(f"{busy} of {len(tracks)} tracks are busy.", style="dim"))


def _lines(title: str, sentences: Iterable[str], style: str) -> list[RenderableType]:
    lines: list[RenderableType] = [_line(f"  {sentence}", style) for sentence in sentences]
    return [Text(), Text(title, style="bold"), *lines] if lines else []


def _left_out(status: WarehouseStatus) -> list[str]:
    """What tables did without, as they are to."""
    files = [
        f"{table.name}: {count(table.discarded_files)} files, which changed too little to be loaded"
        for table in status.tables
        if table.discarded_files
    ]
    shed = {table.name: table.shed_rows for table in status.tables}
    shed |= {step.name: step.rows_shed for step in status.steps}
    rows = [
        f"{name}: {count(number)} rows, which gave way to others of their window"
        for name, number in shed.items()
        if number
    ]
    return [*files, *rows]


def _sentence(text: str) -> Text:
    return Text(f"{printable(text[:1].upper() + text[1:])}.", style="yellow")


def _line(sentence: str, style: str) -> Text:
    return Text(printable(sentence), style=style, no_wrap=True, overflow="ellipsis")
