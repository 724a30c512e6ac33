"""The status of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freshline.base.duration import DAY, format_duration, seconds
from freshline.base.instants import utc, written
from freshline.kernel.tables.state import TableState, exceeds
from freshline.live.status.screen_table import count, screen_table
from freshline.live.status.section import ROWS_MAX, NodeMerge, StatusSection, more_rows, newest_by_name

# From the worst to the best.
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
_URGENCY = {state: number for number, state in enumerate(STYLES)}

Verdict = Literal["exceeded", "above bound", "kept", "not loaded", "nothing came"]
_VERDICT_STYLES: Mapping[Verdict, str] = {
    "exceeded": "red",
    "above bound": "yellow",
    "kept": "green",
    "not loaded": "yellow",
    "nothing came": "dim",
}


@dataclass(frozen=True)
class TableStatus:
    """A table at one instant. Instants are µs since the Unix epoch."""

    name: str
    state: TableState
    freshness_us: int | None  # None until something is loaded
    trailing_edge_us: int | None
    staleness_bound_us: int | None
    target_lag_us: int | None
    period_us: int
    backlog: int  # files that have arrived and are not loaded
    loaded_rows: int  # since the runner started, like late rows and jobs
    late_rows: int
    jobs: int  # finished
    message: str | None  # the last failure
    staleness_max_us: int | None
    lag_max_us: int | None
    running_on: int | None  # the track
    expected: bool = False  # its bound holds in expectation only
    recovery_due_us: int | None = None  # when a late table should have caught up
    recovery_estimated: bool = False  # nothing is promised yet: others recover first
    came_us: int | None = None  # the first arrival of data for it; None: none in this run
    shed_rows: int = 0  # since the runner started: records that `shed` left out
    discarded_files: int = 0  # since then: files that changed too little to be loaded
    late_warning: str | None = None  # if a noticeable share of its rows came late

    @property
    def lag_us(self) -> int | None:
        """How far the table is behind the data that could be loaded; None before the first load."""
        if self.freshness_us is None or self.trailing_edge_us is None:
            return None
        return max(0, self.trailing_edge_us - self.freshness_us)

    def staleness_us(self, now_us: int) -> int | None:
        """The age of the newest record; None before the first load."""
        # A record's timestamp may be a little after its arrival: the table is not fresher than now.
        return None if self.freshness_us is None else max(0, now_us - self.freshness_us)

    def unloaded_us(self, now_us: int) -> int | None:
        """How long a table that has never loaded anything has had data to load."""
        if self.freshness_us is not None or self.came_us is None:
            return None
        return max(0, now_us - self.came_us)

    def misses_target(self, now_us: int) -> bool:
        """Whether the table is staler than its target, or has had no row for longer than that."""
        age_us = self.unloaded_us(now_us) if self.freshness_us is None else self.staleness_us(now_us)
        return exceeds(age_us, self.target_lag_us)

    def record(self, as_of_us: int) -> dict[str, Any]:
        """The table at that instant as JSON for users' programs."""
        due_us = self.recovery_due_us
        return {
            "name": self.name,
            "state": self.state,
            "freshness": written(self.freshness_us),
            "lag": seconds(self.lag_us),
            "staleness": seconds(self.staleness_us(as_of_us)),
            "staleness_bound": seconds(self.staleness_bound_us),
            "target_lag": seconds(self.target_lag_us),
            "backlog": self.backlog,
            "unloaded": seconds(self.unloaded_us(as_of_us)),
            "recovery_due": None if due_us is None else seconds(due_us - as_of_us),
            "recovery_estimated": self.recovery_estimated,
            "rows_shed": self.shed_rows,
            "files_discarded": self.discarded_files,
            "late_warning": self.late_warning,
        }


class TableSection(StatusSection[TableStatus]):
    """The tables that have a period."""

    name = "tables"
    alone = True

    def read(self, record: dict[str, Any]) -> TableStatus:
        return TableStatus(**record)

    def record(self, row: TableStatus, as_of_us: int) -> dict[str, Any]:
        return row.record(as_of_us)

    def summary_record(self, row: TableStatus, at_us: int) -> dict[str, Any]:
        return {
            **row.record(at_us),
            "staleness_max": seconds(row.staleness_max_us),
            "lag_max": seconds(row.lag_max_us),
            "rows": row.loaded_rows,
            "rows_late": row.late_rows,
            "jobs": row.jobs,
            "verdict": verdict(row),
        }

    def merged(self, nodes: NodeMerge) -> tuple[TableStatus, ...]:
        return tuple(newest_by_name(self, nodes).values())

    def view(self, rows: Sequence[TableStatus], as_of_us: int) -> list[RenderableType]:
        return [_staleness_table(_shown(rows, as_of_us), as_of_us), *more_rows(rows, ", less troubled")]

    def lines(self, rows: Sequence[TableStatus], as_of_us: int) -> dict[str, list[str]]:
        files = [
            f"{row.name}: {count(row.discarded_files)} files, which changed too little to be loaded"
            for row in rows
            if row.discarded_files
        ]
        return {
            "Messages": [
                *(f"{row.name}: {row.message}" for row in _shown(rows, as_of_us) if row.message),
                *(row.late_warning for row in rows if row.late_warning),
            ],
            "Left out": [*files, *shed_lines({row.name: row.shed_rows for row in rows})],
        }

    def brief(self, rows: Sequence[TableStatus]) -> str:
        states = Counter(row.state for row in sorted(rows, key=lambda row: _URGENCY[row.state]))
        told = ", ".join(f"{number} {state}" for state, number in states.items())
        loaded, waiting = sum(row.loaded_rows for row in rows), sum(row.backlog for row in rows)
        return f"tables: {told}; {loaded:,} rows loaded, {waiting:,} files wait"

    def summary(self, rows: Sequence[TableStatus], at_us: int) -> list[RenderableType]:
        return [_summary_table(rows, at_us)]

    def exceeded(self, rows: Sequence[TableStatus], at_us: int) -> int:
        return sum(_exceeded(row, at_us) for row in rows)

    def verdict_lines(self, rows: Sequence[TableStatus], at_us: int) -> list[str]:
        exceeded = self.exceeded(rows, at_us)
        targeted = [row for row in rows if row.target_lag_us is not None]
        unloaded = sum(row.freshness_us is None for row in targeted)
        targets = len(targeted)
        lines = []
        if exceeded:
            lines.append(f"[red]Exceeded[/]: {exceeded} of {targets} targets.")
        elif targets > unloaded:
            lines.append(f"[green]Kept[/]: no target of {targets - unloaded} was exceeded.")
        if unloaded:
            tables = f"{unloaded} of {targets} {'table' if targets == 1 else 'tables'}"
            lines.append(f"[yellow]Not loaded[/]: {tables} with a target.")
        return [*lines, *late_lines(row.late_warning for row in rows)]

    def unexplained(
        self, rows: Sequence[TableStatus], asserted_max_us: Mapping[str, int | None]
    ) -> list[Text]:
        """Exceeded bounds. A bound counts once the table is fresh: a backlog at the start breaks nothing."""
        above = [
            row for row in rows if exceeds(row.staleness_max_us, row.staleness_bound_us) and not row.expected
        ]
        worst_us = {row.name: asserted_max_us.get(row.name, row.staleness_max_us) for row in above}
        wrong = [row.name for row in above if exceeds(worst_us[row.name], row.staleness_bound_us)]
        if wrong:
            return [
                Text(
                    f"A proven bound was exceeded while every assumption held: {', '.join(wrong)}. "
                    "This is a bug of Freshline: please report it, with the event log.",
                    style="red",
                )
            ]
        if above:
            names = ", ".join(row.name for row in above)
            return [Text(f"Above the bound, but not since first fresh in this run: {names}.")]
        return []


TABLES = TableSection()


def verdict(table: TableStatus) -> Verdict | None:
    """The verdict on a table at the end of a run; None for a table without a target or a problem."""
    if exceeds(table.staleness_max_us, table.target_lag_us):
        return "exceeded"
    if table.freshness_us is None:
        return "nothing came" if table.came_us is None else "not loaded"
    if exceeds(table.staleness_max_us, table.staleness_bound_us):
        return "above bound"
    return None if table.target_lag_us is None else "kept"


def late_lines(warnings: Iterable[str | None]) -> list[str]:
    """A line of the summary for each table or step with many late rows."""
    return [f"[yellow]Late[/]: {warning}." for warning in warnings if warning]


def shed_lines(shed: Mapping[str, int]) -> list[str]:
    """A line for each table or step with rows that `shed` left out."""
    return [
        f"{name}: {count(number)} rows, which gave way to others of their window"
        for name, number in shed.items()
        if number
    ]


def _staleness_table(rows: Sequence[TableStatus], now_us: int) -> Table:
    return screen_table(
        rows,
        {
            "table": lambda row: Text(row.name),
            "state": lambda row: Text(row.state, style=STYLES[row.state]),
            ">freshness": lambda row: "-" if row.freshness_us is None else _time(row.freshness_us, now_us),
            ">lag": lambda row: format_duration(row.lag_us),
            ">staleness": lambda row: _staleness(row, now_us),
            ">bound": lambda row: format_duration(row.staleness_bound_us, up=True),
            ">target": lambda row: format_duration(row.target_lag_us),
            ">backlog": lambda row: str(row.backlog),
            ">rows": lambda row: count(row.loaded_rows),
        },
    )


def _summary_table(rows: Sequence[TableStatus], at_us: int) -> Table:
    return screen_table(
        rows,
        {
            "table": lambda row: Text(row.name),
            ">staleness": lambda row: format_duration(row.staleness_max_us),
            ">bound": lambda row: format_duration(row.staleness_bound_us, up=True),
            ">of bound": _of_bound,
            ">target": lambda row: format_duration(row.target_lag_us),
            ">lag": lambda row: format_duration(row.lag_max_us),
            ">rows": lambda row: count(row.loaded_rows),
            ">late": lambda row: count(row.late_rows),
            ">jobs": lambda row: count(row.jobs),
            "": lambda row: _verdict_text(row, at_us),
        },
    )


def _of_bound(table: TableStatus) -> str:
    observed_us, bound_us = table.staleness_max_us, table.staleness_bound_us
    return "-" if bound_us is None or observed_us is None else f"{observed_us / bound_us:.0%}"


def _shown(rows: Sequence[TableStatus], now_us: int) -> Sequence[TableStatus]:
    # Rows that change places are hard to follow: they are sorted only if some must be left out.
    if len(rows) <= ROWS_MAX:
        return rows
    return sorted(rows, key=lambda row: (not row.misses_target(now_us), _URGENCY[row.state]))[:ROWS_MAX]


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


def _exceeded(table: TableStatus, at_us: int) -> bool:
    observed_us = table.unloaded_us(at_us) if table.freshness_us is None else table.staleness_max_us
    return exceeds(observed_us, table.target_lag_us)


def _verdict_text(table: TableStatus, at_us: int) -> Text:
    word = verdict(table)
    return Text() if word is None else Text(word, "red" if _exceeded(table, at_us) else _VERDICT_STYLES[word])
