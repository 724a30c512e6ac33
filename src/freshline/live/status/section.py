"""A section of a run's status: the rows of one kind, as JSON, on a screen and in a summary.

A kind of work has its sections in its own folder; `live.kinds_of_work` lists them all. The status file, the
merge over nodes, the view and the summary all use that list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from rich.console import RenderableType
from rich.text import Text

from freshline.base.printable import printable

if TYPE_CHECKING:
    from freshline.live.status.status import WarehouseStatus

Row = TypeVar("Row")
ROWS_MAX = 25  # of a table on a screen


@dataclass(frozen=True, slots=True)
class NodeMerge:
    """The statuses of a warehouse's nodes, the oldest first, and the data to merge their rows.

    `names` are all tables and steps, in the order of definition; `upstream` has, by output, the steps
    upstream that load files.
    """

    statuses: Sequence[WarehouseStatus]
    newest_last: Sequence[WarehouseStatus]
    names: Sequence[str]
    upstream: Mapping[str, Sequence[str]]


class StatusSection(Generic[Row]):
    """One section. By default its rows are frozen dataclasses with a method `record`."""

    name: ClassVar[str]  # in the status file and in `freshline status --json`
    single: ClassVar[bool] = False  # it has at most one row, which is null in JSON if it is missing
    leads: ClassVar[bool] = False  # the view shows it before the others
    alone: ClassVar[bool] = False  # the view shows it even without rows, if no other section has any
    rank: ClassVar[int] = 0  # the place of its lines in the summary and among messages

    def told(self, rows: Sequence[Any]) -> Any:
        """The rows; for a single section its row or None."""
        return next(iter(rows), None) if self.single else rows

    def read(self, record: dict[str, Any]) -> Row:
        """A row of the status file."""
        raise NotImplementedError

    def record(self, row: Row, as_of_us: int) -> dict[str, Any]:
        """A row as JSON for users' programs."""
        found: dict[str, Any] = row.record()  # type: ignore[attr-defined]
        return found

    def summary_record(self, row: Row, at_us: int) -> dict[str, Any]:
        """A row in the JSON of a run's summary."""
        return self.record(row, at_us)

    def ended(self, row: Row) -> Row:
        """The row after a run that ended without a last status."""
        return row

    def merged(self, nodes: NodeMerge) -> tuple[Row, ...]:
        """The rows of all nodes."""
        return tuple(row for status in nodes.statuses for row in status.rows(self))

    def heading(self, rows: Sequence[Row]) -> list[str]:
        """Sentences at the top of the view."""
        return []

    def view(self, rows: Sequence[Row], as_of_us: int) -> list[RenderableType]:
        """The rows on a screen."""
        return []

    def lines(self, rows: Sequence[Row], as_of_us: int) -> dict[str, list[str]]:
        """Lines about the rows for the view, by the titles of `live.status.view`."""
        return {}

    def brief(self, rows: Sequence[Row]) -> str:
        """The rows in a few words, for a line of progress."""
        return "" if self.single else f"{len(rows)} {self.name}"

    def summary(self, rows: Sequence[Row], at_us: int) -> list[RenderableType]:
        """The rows at the end of a run."""
        return self.view(rows, at_us) if rows else []

    def exceeded(self, rows: Sequence[Row], at_us: int) -> int:
        """The number of targets that were exceeded at any time of the run."""
        return 0

    def verdict_lines(self, rows: Sequence[Row], at_us: int) -> list[str]:
        """Whether targets were kept, as marked-up text."""
        return []

    def unexplained(self, rows: Sequence[Row], asserted_max_us: Mapping[str, int | None]) -> list[Text]:
        """Bounds that did not hold although every assumption did."""
        return []


def newest_by_name(section: StatusSection[Any], nodes: NodeMerge) -> dict[str, Any]:
    """By name, the row of the node that wrote last: after a move, an old node's status may still have it."""
    found = {row.name: row for status in nodes.newest_last for row in status.rows(section)}
    return {name: found[name] for name in nodes.names if name in found}


def more_rows(rows: Sequence[Any], what: str) -> list[RenderableType]:
    """A line with the number of rows that the screen leaves out."""
    hidden = len(rows) - ROWS_MAX
    return [Text(f"... and {hidden} more{what}.", style="dim")] if hidden > 0 else []


def line(sentence: str, style: str) -> Text:
    """One line of a screen, cut at its edge."""
    return Text(printable(sentence), style=style, no_wrap=True, overflow="ellipsis")


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
