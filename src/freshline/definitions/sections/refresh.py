"""How a derived table is kept up to date: by appending rows, or by computing it whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Final, Literal

from freshline.base.duration import format_duration
from freshline.base.errors import InputError
from freshline.sql.checks import QueryCheck
from freshline.sql.query import parse_query
from freshline.sql.time import Relation, own_time

if TYPE_CHECKING:
    from freshline.definitions.sections.table_entry import TableEntry

Mode = Literal["append", "full"]
Reason = tuple[str, str]  # why rows cannot only be appended, and what would help


@dataclass(frozen=True, slots=True)
class Refresh:
    """How a table is kept up to date, and why not by appending."""

    mode: Mode = "append"
    because: tuple[Reason, ...] = ()


APPEND: Final = Refresh()
_ASKED: Final[Reason] = ("`refresh: full` asks for it", "Remove it, if its SQL allows to append")


class RefreshRules:
    """Finds the timestamp and the refresh of tables, each after its sources."""

    def __init__(self) -> None:
        self.timestamps: dict[str, str | None] = {}  # the columns, if known; None: the table has no time
        self.refreshes: dict[str, Refresh] = {}
        self._relations: dict[str, Relation] = {}
        self._unclear: set[str] = set()  # tables of feeds whose timestamp is not declared: only for plans

    def add_base(self, name: str, entry: TableEntry, feed: Relation, feed_timestamp: str | None) -> None:
        """A base table: its rows are only ever appended."""
        self.timestamps[name] = timestamp = entry.timestamp or feed_timestamp
        names = feed.names
        if entry.select is not None:
            check = _checked(entry.select, {str(entry.feed): feed}, by_record=True)
            names = None if check is None else check.result.names
        self._relations[name] = Relation(names, own_time(timestamp))
        self.refreshes[name] = APPEND
        if timestamp is None:
            self._unclear.add(name)

    def add_derived(self, name: str, entry: TableEntry, sources: Sequence[str], is_step: bool) -> None:
        """A derived table. The rows of steps are only ever appended."""
        inherited = self.timestamps.get(sources[0]) if sources else None
        known = {source: self._relations[source] for source in sources if source in self._relations}
        check = None if entry.sql is None else _checked(entry.sql, known)
        names = None if check is None else check.result.names
        timestamp = entry.timestamp or inherited
        if not self._unclear.isdisjoint(sources):
            self._unclear.add(name)
        because: tuple[Reason, ...] = ()
        if check is not None and not is_step and name not in self._unclear:
            whole = [source for source in sources if self.refreshes.get(source, APPEND).mode == "full"]
            because = _reasons(entry, check, timestamp, whole)
        if entry.refresh == "full" and not is_step:
            because = because or (_ASKED,)
        # A column that nobody has named, and that the SQL does not certainly give, is not its time.
        if because and entry.timestamp is None and (timestamp or "").lower() not in (names or ()):
            timestamp = None
        self.timestamps[name] = timestamp
        self._relations[name] = Relation(names, own_time(timestamp))
        self.refreshes[name] = Refresh("full", because) if because else APPEND


def _checked(sql: str, sources: Mapping[str, Relation], by_record: bool = False) -> QueryCheck | None:
    """The check of a query; None of one that does not parse, which is reported elsewhere."""
    try:
        return QueryCheck(parse_query(sql), sources, by_record)
    except InputError:
        return None


def _reasons(
    entry: TableEntry, check: QueryCheck, timestamp: str | None, whole: Collection[str]
) -> tuple[Reason, ...]:
    """Why an update cannot only append rows; nothing if it can."""
    found = [
        (f"it reads `{source}`, which is computed whole", f"See `{source}`: what helps it helps here")
        for source in whole
    ]
    if not check.errors and timestamp is not None:
        check.timestamp(timestamp)
    elif not check.errors:
        found.append(("it has no time", "Name its timestamp column with `timestamp`"))
    found += check.errors
    if found:
        return tuple(dict.fromkeys(found))
    if check.windows and entry.align_us is None:
        remedy = f"Add the windows' length, such as `align: {format_duration(lcm(*check.windows))}`"
        found.append(("its SQL has windows of time, and `align` is missing", remedy))
    if not entry.lookback_us and check.result.reach_us != 0:
        remedy = "Add the length of the range, such as `lookback: 10 minutes`"
        found.append(("its SQL joins over a range of time, and `lookback` is missing", remedy))
    return tuple(found)
