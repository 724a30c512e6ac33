"""The status of continuous queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freshline.base.duration import format_duration, seconds
from freshline.live.queries.held_back import held_back_line
from freshline.live.status.screen_table import count, screen_table
from freshline.live.status.section import ROWS_MAX, StatusSection, line, more_rows, percent

# COMING: it will join its pool. LEAVING: it leaves after its iteration. ENDED: the run has ended.
QueryState = Literal["RUNNING", "COMING", "LEAVING", "REFUSED", "ENDED"]
_STYLES: Mapping[QueryState, str] = {
    "RUNNING": "green",
    "COMING": "cyan",
    "LEAVING": "dim",
    "REFUSED": "bold red",
    "ENDED": "dim",
}


@dataclass(frozen=True)
class QueryStatus:
    """A continuous query at one instant."""

    name: str
    state: QueryState
    pool: str
    stride_us: int | None = None
    deadline_us: int | None = None
    budget_us: int | None = None  # of its last iteration; None: no limit
    iterations: int = 0  # finished, since its admission
    misses: int = 0
    missed_because: str | None = None
    keep: float | None = None  # of its last answer
    keep_mean: float | None = None
    finished_us: int | None = None  # the time of that answer
    message: str | None = None  # the last failure
    period_least_us: int | None = None  # of a refused query
    looks: int = 0  # iterations that read beyond their budget, to learn the present cost
    held_back_by: str | None = None  # the table where its windows end, more than a window before another
    behind_us: int | None = None  # how far that table is behind; None if nothing was loaded into it yet

    def record(self) -> dict[str, Any]:
        """The query as JSON for users' programs."""
        return {
            "name": self.name,
            "state": self.state,
            "pool": self.pool,
            "stride": seconds(self.stride_us),
            "deadline": seconds(self.deadline_us),
            "budget": seconds(self.budget_us),
            "iterations": self.iterations,
            "misses": self.misses,
            "missed_because": self.missed_because,
            "looks": self.looks,
            "keep": self.keep,
            "keep_mean": self.keep_mean,
            "finished": seconds(self.finished_us),
            "last_error": self.message,
            "period_least": seconds(self.period_least_us),
            "held_back_by": self.held_back_by,
            "behind": seconds(self.behind_us),
        }


class QuerySection(StatusSection[QueryStatus]):
    """The continuous queries."""

    name = "queries"
    rank = 2

    def read(self, record: dict[str, Any]) -> QueryStatus:
        return QueryStatus(**record)

    def ended(self, row: QueryStatus) -> QueryStatus:
        return row if row.state == "REFUSED" else replace(row, state="ENDED")

    def view(self, rows: Sequence[QueryStatus], as_of_us: int) -> list[RenderableType]:
        return [_query_table(rows), *more_rows(rows, " queries")]

    def lines(self, rows: Sequence[QueryStatus], as_of_us: int) -> dict[str, list[str]]:
        return {
            "Messages": [f"{row.name}: {row.message}" for row in rows if row.message],
            "Held back": _held_back(rows),
            "Missed deadlines": [f"{row.name}: {row.missed_because}" for row in rows if row.missed_because],
        }

    def summary(self, rows: Sequence[QueryStatus], at_us: int) -> list[RenderableType]:
        if not rows:
            return []
        return [_query_table(rows), *(line(each, "yellow") for each in _held_back(rows)[:ROWS_MAX])]


QUERIES = QuerySection()


def _held_back(queries: Sequence[QueryStatus]) -> list[str]:
    return [
        f"{row.name}: {held_back_line(row.held_back_by, row.behind_us)}"
        for row in queries
        if row.held_back_by is not None
    ]


def _query_table(queries: Sequence[QueryStatus]) -> Table:
    return screen_table(
        queries[:ROWS_MAX],
        {
            "query": lambda row: Text(row.name),
            "state": lambda row: Text(row.state, style=_STYLES[row.state]),
            ">stride": lambda row: format_duration(row.stride_us),
            ">deadline": lambda row: format_duration(row.deadline_us),
            ">budget": lambda row: format_duration(row.budget_us),
            ">answers": lambda row: count(row.iterations),
            ">missed": lambda row: Text(count(row.misses), style="red" if row.misses else ""),
            ">keep": lambda row: percent(row.keep),
            ">mean": lambda row: percent(row.keep_mean),
        },
    )
