"""What a section of a run's status is: the rows of one kind, as JSON, on a screen and in a summary.

A kind of work has its sections in its own folder; `live.kinds_of_work` lists them all. Everything that goes
over a status (its file, the merge over nodes, view, summary) goes over that list.
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
    """The statuses of a warehouse's nodes, the oldest first, and what is needed to merge their rows.

    `names` are all tables and steps, in the order of definition; `upstream` are, by output, the steps that
    load what it is computed from.
    """

    statuses: Sequence[WarehouseStatus]
    newest_last: Sequence[WarehouseStatus]
    names: Sequence[str]
    upstream: Mapping[str, Sequence[str]]


class StatusSection(Generic[Row]):
    """One section. The defaults are for rows that are frozen dataclasses with a method `record`."""

    name: ClassVar[str]  # in the status file and in `freshline status --json`
    single: ClassVar[bool] = False  # it has one row at most, which is null in JSON where it is missing
    leads: ClassVar[bool] = False  # the view shows it before the others
    alone: ClassVar[bool] = False  # the view shows it even without rows, if no other section has any
    rank: ClassVar[int] = 0  # the place of its lines in the summary and among messages

    def told(self, rows: Sequence[Any]) -> Any:
        """The rows, or the one row there is where there is one at most."""
        return next(iter(rows), None) if self.single else rows

    def read(self, record: dict[str, Any]) -> Row:
        """A row of the status file."""
        raise NotImplementedError

    def record(self, row: Row, as_of_us: int) -> dict[str, Any]:
        """A row as people's programs read it."""
        found: dict[str, Any] = row.record()  # type: ignore[attr-defined]
        return found

    def summary_record(self, row: Row, at_us: int) -> dict[str, Any]:
        """A row as the summary of a run has it in JSON."""
        return self.record(row, at_us)

    def ended(self, row: Row) -> Row:
        """The row of a run that has ended without a last word."""
        return row

    def merged(self, nodes: NodeMerge) -> tuple[Row, ...]:
        """The rows of all nodes."""
        return tuple(row for status in nodes.statuses for row in status.rows(self))

    def heading(self, rows: Sequence[Row]) -> list[str]:
        """Sentences that stand above everything else in the view."""
        return []

    def view(self, rows: Sequence[Row], as_of_us: int) -> list[RenderableType]:
        """The rows on a screen."""
        return []

    def lines(self, rows: Sequence[Row], as_of_us: int) -> dict[str, list[str]]:
        """What there is to say of the rows in the view, under the titles of `live.status.view`."""
        return {}

    def summary(self, rows: Sequence[Row], at_us: int) -> list[RenderableType]:
        """The rows at the end of a run."""
        return self.view(rows, at_us) if rows else []

    def exceeded(self, rows: Sequence[Row], at_us: int) -> int:
        """How many targets were exceeded at any time of the run."""
        return 0

    def verdict_lines(self, rows: Sequence[Row], at_us: int) -> list[str]:
        """Whether targets were kept, as marked-up text."""
        return []

    def unexplained(self, rows: Sequence[Row], asserted_max_us: Mapping[str, int | None]) -> list[Text]:
        """What broke although every assumption held."""
        return []


def newest_by_name(section: StatusSection[Any], nodes: NodeMerge) -> dict[str, Any]:
    """By name, the row of the node that wrote last: after a move, an old node may still tell of it."""
    found = {row.name: row for status in nodes.newest_last for row in status.rows(section)}
    return {name: found[name] for name in nodes.names if name in found}


def more_rows(rows: Sequence[Any], what: str) -> list[RenderableType]:
    """How many rows a screen leaves out."""
    hidden = len(rows) - ROWS_MAX
    return [Text(f"... and {hidden} more{what}.", style="dim")] if hidden > 0 else []


def line(sentence: str, style: str) -> Text:
    """One line of a screen, cut where the screen ends."""
    return Text(printable(sentence), style=style, no_wrap=True, overflow="ellipsis")


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
