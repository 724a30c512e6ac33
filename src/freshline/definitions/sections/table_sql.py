"""Checks whether the SQL of tables can be run, and whether tables that append can do so."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from freshline.base.duration import format_duration
from freshline.definitions.language.section import LiveCheck
from freshline.definitions.sections.discard import check_discard_live
from freshline.definitions.sections.shed import check_shed_table
from freshline.sql.checks import QueryCheck
from freshline.sql.columns import RESERVED_COLUMNS
from freshline.sql.query import parse_query
from freshline.sql.time import Relation, own_time

if TYPE_CHECKING:
    from freshline.definitions.sections.stored import StoredDefinition


def check_tables(check: LiveCheck) -> None:
    """Reports tables that cannot run, or would not hold what their SQL says."""
    _Tables(check)
    for table in check.warehouse.tables.values():
        check_discard_live(check, table)


class _Tables:
    def __init__(self, check: LiveCheck) -> None:
        self._check = check
        self._report = check.report
        self._feeds = check.relations["feeds"]
        self._tables: dict[str, Relation] = {}
        check.relations["tables"] = self._tables
        warehouse = check.warehouse
        stored = warehouse.stored
        for name in warehouse.stored_order:
            table = stored[name]
            self._tables[name] = self._base(table) if table.feed is not None else self._derived(table)

    def _base(self, table: StoredDefinition) -> Relation:
        assert table.feed is not None
        feed = self._feeds[table.feed]
        check_shed_table(self._check, table)
        if table.select is None:
            return feed
        check = QueryCheck(parse_query(table.select), {table.feed: feed}, by_record=True)
        if feed.times and table.timestamp is not None and not (check.errors or check.refusals):
            check.timestamp(table.timestamp)
        self._report_query(table, "select", check)
        return Relation(check.result.names, own_time(table.timestamp))

    def _derived(self, table: StoredDefinition) -> Relation:
        path = ("tables", table.name)
        if table.sql is None:
            remedy = "Add the query that gives its rows; `plan` and `simulate` do not need it"
            self._report(path, table.place, "`sql` is missing, and a run needs it", remedy)
            return Relation(None, own_time(table.timestamp))
        sources = {name: self._tables[name] for name in table.sources if name in self._tables}
        check = QueryCheck(parse_query(table.sql), sources)
        result = Relation(check.result.names, own_time(table.timestamp))
        if table.is_whole:
            self._check_given(table, check)
        elif all(relation.times for relation in sources.values()):
            self._check_appended(table, check)
        else:
            check.errors.clear()  # a source without a timestamp has been reported already
        self._report_query(table, "sql", check)
        return result

    def _check_given(self, table: StoredDefinition, check: QueryCheck) -> None:
        """Checks that the SQL gives the timestamp; nothing else keeps a table from being computed whole."""
        names = check.result.names
        check.errors.clear()
        if table.timestamp is not None and names is not None and table.timestamp.lower() not in names:
            check.timestamp(table.timestamp)

    def _check_appended(self, table: StoredDefinition, check: QueryCheck) -> None:
        if table.timestamp is None:
            remedy = "Add it, such as `timestamp: ts`"
            self._report(("tables", table.name), table.place, "its timestamp column is not known", remedy)
            return
        # The rest needs a query that is valid so far; otherwise most of it would be follow-up errors.
        if not check.errors:
            check.timestamp(table.timestamp)
        if not check.errors:
            self._check_windows(table, check)
            self._check_lookback(table, check)

    def _check_windows(self, table: StoredDefinition, check: QueryCheck) -> None:
        path = ("tables", table.name)
        if check.windows and table.align_us is None:
            remedy = f"Add the windows' length, such as `align: {format_duration(lcm(*check.windows))}`"
            self._report(path, table.place, "its SQL has windows of time, and `align` is missing", remedy)
        for length_us in sorted(each for each in check.windows if table.align_us and table.align_us % each):
            what = f"it is not a whole number of the SQL's windows of {format_duration(length_us)}"
            remedy = "Give the windows' length or a multiple of it"
            self._report((*path, "align"), table.place, what, remedy)

    def _check_lookback(self, table: StoredDefinition, check: QueryCheck) -> None:
        path = ("tables", table.name)
        reach_us = check.result.reach_us
        is_enough = reach_us is not None and table.lookback_us >= reach_us
        if table.lookback_trusted and (is_enough or not check.is_vague):
            what = "it has no effect: the SQL itself shows how far back it reads"
            self._report((*path, "lookback_trusted"), table.place, what, "Remove it")
        if is_enough or (table.lookback_trusted and check.is_vague):
            return
        trust = "add `lookback_trusted: true` if you know that `lookback` covers it"
        if not table.lookback_us:
            what = "its SQL joins over a range of time, and `lookback` is missing"
            remedy = "Add the length of the range, such as `lookback: 10 minutes`"
            self._report(path, table.place, what, remedy)
        elif reach_us is None:
            what = "its SQL joins over a range of time without showing how long the range is"
            plainly = "Write it in the form `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts`"
            self._report(path, table.place, what, f"{plainly}, or {trust}")
        else:
            what = "it is shorter than the range of time that its SQL joins over"
            remedy = f"Give at least {format_duration(reach_us, up=True)}"
            more = f", or {trust}" if check.is_vague else ""
            self._report((*path, "lookback"), table.place, what, f"{remedy}{more}")

    def _report_query(self, table: StoredDefinition, key: str, check: QueryCheck) -> None:
        for name in RESERVED_COLUMNS:
            if name in (check.result.names or ()):
                what = f"its column `{name}` is one that Freshline adds itself"
                self._report(("tables", table.name, key), table.place, what, "Give it another name")
        for what, remedy in [*check.refusals, *check.errors]:
            self._report(("tables", table.name, key), table.place, what, remedy)
