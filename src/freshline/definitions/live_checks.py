"""What may be planned and simulated, but cannot be run on data."""

from __future__ import annotations

from math import lcm
from typing import Final

from freshline.definitions.columns import LATE_COLUMN, parse_columns
from freshline.definitions.duration import format_duration
from freshline.definitions.errors import DefinitionErrors, InputError, Place
from freshline.definitions.sentences import about
from freshline.definitions.sql.checks import QueryCheck
from freshline.definitions.sql.query import parse_query
from freshline.definitions.sql.time import Relation, Time
from freshline.definitions.warehouse import Feed, Landing, Table, Warehouse

_MISSING: Final = {
    "path": "Add the directory in which its files land, such as `path: landing/packets`",
    "format": "Add `format: csv`, `json` or `parquet`",
    "schema": "Add its columns, such as `schema: ts timestamp, src string, bytes long`",
    "timestamp": "Add the column that says when a record was made, such as `timestamp: ts`",
}


def check_runnable(warehouse: Warehouse) -> None:
    """Raises `DefinitionErrors` where the warehouse cannot be run, or would not hold what its SQL says."""
    check = _Check(warehouse)
    if check.errors:
        raise DefinitionErrors(sorted(check.errors, key=lambda error: error.place.line if error.place else 0))


class _Check:
    def __init__(self, warehouse: Warehouse) -> None:
        self.errors: list[InputError] = []
        used = {table.feed for table in warehouse.tables.values()}
        for feed in warehouse.feeds.values():
            if feed.name not in used:
                remedy = "Load it with a table, or remove it; `plan` and `simulate` take it as it is"
                self._report(("feeds", feed.name), feed.place, "no table loads it", remedy)
        # What a query may read, as far as it is known in spite of errors.
        self._feeds = {name: self._feed(feed) for name, feed in warehouse.feeds.items() if feed.name in used}
        self._tables: dict[str, Relation] = {}
        for name in warehouse.topological_order:
            table = warehouse.tables[name]
            self._tables[name] = self._base(table) if table.feed is not None else self._derived(table)

    def _report(self, path: tuple[str, ...], place: Place, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, place))

    def _feed(self, feed: Feed) -> Relation:
        path = ("feeds", feed.name)
        if feed.arrival == "continuous":
            remedy = "Let its data come in files (`arrival: files`); `plan` and `simulate` take it as it is"
            self._report(path, feed.place, "a continuous feed cannot be run yet", remedy)
            return Relation(None, _own_time(feed.landing.timestamp))
        for key, remedy in _MISSING.items():
            if getattr(feed.landing, key) is None:
                self._report(path, feed.place, f"`{key}` is missing, and a run needs it", remedy)
        names = None
        if feed.landing.schema is not None:
            try:
                names = _checked_names(feed.landing, feed.landing.schema)
            except InputError as error:
                self._report((*path, "schema"), feed.place, error.what, error.remedy)
        return Relation(names, _own_time(feed.landing.timestamp))

    def _base(self, table: Table) -> Relation:
        assert table.feed is not None
        feed = self._feeds[table.feed]
        if table.select is None:
            return feed
        check = QueryCheck(parse_query(table.select), {table.feed: feed}, by_record=True)
        if feed.times and table.timestamp is not None and not check.errors:
            check.timestamp(table.timestamp)
        self._report_query(table, "select", check)
        return Relation(check.result.names, _own_time(table.timestamp))

    def _derived(self, table: Table) -> Relation:
        path = ("tables", table.name)
        if table.sql is None:
            remedy = "Add the query that gives its rows; `plan` and `simulate` do without"
            self._report(path, table.place, "`sql` is missing, and a run needs it", remedy)
            return Relation(None, _own_time(table.timestamp))
        sources = {name: self._tables[name] for name in table.sources if name in self._tables}
        # A source without a timestamp has been reported already.
        is_clear = all(relation.times for relation in sources.values())
        if table.timestamp is None:
            if is_clear:
                remedy = "Add it, such as `timestamp: ts`"
                self._report(path, table.place, "its timestamp column is not known", remedy)
            return Relation(None, {})
        check = QueryCheck(parse_query(table.sql), sources)
        if is_clear:
            # The rest is said of a query that is right so far: most of it would follow from what is wrong.
            if not check.errors:
                check.timestamp(table.timestamp)
            if not check.errors:
                self._check_windows(table, check)
                self._check_lookback(table, check)
            self._report_query(table, "sql", check)
        return Relation(check.result.names, _own_time(table.timestamp))

    def _check_windows(self, table: Table, check: QueryCheck) -> None:
        path = ("tables", table.name)
        if check.windows and table.align_us is None:
            remedy = f"Add the windows' length, such as `align: {format_duration(lcm(*check.windows))}`"
            self._report(path, table.place, "its SQL has windows of time, and `align` is missing", remedy)
        for length_us in sorted(each for each in check.windows if table.align_us and table.align_us % each):
            what = f"it is not a whole number of the SQL's windows of {format_duration(length_us)}"
            remedy = "Give the windows' length or a multiple of it"
            self._report((*path, "align"), table.place, what, remedy)

    def _check_lookback(self, table: Table, check: QueryCheck) -> None:
        path = ("tables", table.name)
        reach_us = check.result.reach_us
        is_enough = reach_us is not None and table.lookback_us >= reach_us
        if table.lookback_trusted and (is_enough or not check.is_vague):
            what = "it has no effect: how far back the SQL reads can be told from the SQL"
            self._report((*path, "lookback_trusted"), table.place, what, "Remove it")
        if is_enough or (table.lookback_trusted and check.is_vague):
            return
        trust = "add `lookback_trusted: true` if you know that `lookback` covers it"
        if not table.lookback_us:
            what = "its SQL joins over a range of time, and `lookback` is missing"
            remedy = "Add the length of the range, such as `lookback: 10 minutes`"
            self._report(path, table.place, what, remedy)
        elif reach_us is None:
            what = "how long the range of time is that its SQL joins over cannot be told from the SQL"
            plainly = "Write it as `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts` is"
            self._report(path, table.place, what, f"{plainly}, or {trust}")
        else:
            what = "it is shorter than the range of time that its SQL joins over"
            remedy = f"Give at least {format_duration(reach_us, up=True)}"
            more = f", or {trust}" if check.is_vague else ""
            self._report((*path, "lookback"), table.place, what, f"{remedy}{more}")

    def _report_query(self, table: Table, key: str, check: QueryCheck) -> None:
        if LATE_COLUMN in (check.result.names or ()):
            what = f"its column `{LATE_COLUMN}` is one that Freshline adds itself"
            self._report(("tables", table.name, key), table.place, what, "Give it another name")
        for what, remedy in check.errors:
            self._report(("tables", table.name, key), table.place, what, remedy)


def _checked_names(landing: Landing, schema: str) -> tuple[str, ...]:
    """The columns of a schema that has what the format and the timestamp need."""
    columns = parse_columns(schema)
    if landing.format == "csv" and any(column.is_nested for column in columns):
        name = next(column.name for column in columns if column.is_nested)
        raise InputError(f"a csv file cannot hold the column `{name}`", "Use `format: json` or `parquet`")
    names = tuple(column.name.lower() for column in columns)
    if landing.timestamp is None:
        return names
    column = next((each for each in columns if each.name.lower() == landing.timestamp.lower()), None)
    if column is None:
        remedy = "Add it, or name another column with `timestamp`"
        raise InputError(f"it has no column `{landing.timestamp}`, the timestamp", remedy)
    if not column.is_timestamp:
        remedy = f"Declare it as `{column.name} timestamp`"
        raise InputError(f"the timestamp column `{column.name}` is not of the type timestamp", remedy)
    return names


def _own_time(column: str | None) -> dict[str, Time]:
    return {} if column is None else {column.lower(): Time()}
