"""The rules between keys and between entries: what they mean together becomes a warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from freshline.definitions.document import Document
from freshline.definitions.duration import format_duration
from freshline.definitions.errors import InputError
from freshline.definitions.file import CostEntry, FeedEntry, PoolEntry, TableEntry, WarehouseFile
from freshline.definitions.graph import cycles, topological_order
from freshline.definitions.names import Names, one_of
from freshline.definitions.sentences import about
from freshline.definitions.sql.query import tables_read
from freshline.definitions.warehouse import (
    ADAPTIVE,
    Cost,
    Feed,
    Landing,
    PolicyName,
    Pool,
    Table,
    Warehouse,
)

_Path = tuple[str | int, ...]

_USELESS_ON_BASE: Final = "it has no effect on a table that loads a feed"


class Resolver:
    """Fills in defaults, finds what is referred to, and collects what is wrong.

    The file holds the entries that are right by themselves. The document has the others too, and to refer to
    one of those is not another error.
    """

    def __init__(self, file: WarehouseFile, document: Document) -> None:
        self.errors: list[InputError] = []
        self._file = file
        self._document = document
        self._pools, self._feeds, self._tables = (
            Names(section, document.tree.get(section, ())) for section in ("pools", "feeds", "tables")
        )
        self._unclear: set[str] = set()  # tables some of whose sources were not found
        self._by_files: dict[str, bool] = {}  # whether files upstream release a table, where that is clear
        self._timestamps: dict[str, str | None] = {}  # the tables' timestamp columns, where they are known

    def warehouse(self) -> Warehouse:
        """The warehouse; it is whole where there are no errors."""
        file = self._file
        pools = {name: self._pool(name, entry) for name, entry in file.pools.items()}
        feeds = {name: self._feed(name, entry) for name, entry in file.feeds.items()}
        sources = {name: self._sources(name, entry) for name, entry in file.tables.items()}
        order = self._order(sources)
        for name in order:
            self._find_release(name, sources[name])
            self._find_timestamp(name, sources[name])
        resolved = (self._table(name, entry, sources[name], feeds) for name, entry in file.tables.items())
        return Warehouse(
            name=file.name,
            storage=file.storage,
            pools=pools,
            feeds=feeds,
            tables={table.name: table for table in resolved if table is not None},
            topological_order=tuple(order),
            released_by_files=frozenset(name for name, by_files in self._by_files.items() if by_files),
        )

    def _report(self, path: _Path, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, self._document.place(path)))

    def _pool(self, name: str, entry: PoolEntry) -> Pool:
        place = self._document.place(("pools", name))
        options = {
            key: value
            for key in ("cluster_factor", "provisioning", "recovery")
            if (value := getattr(entry, key)) is not None
        }
        for key in options:
            meant: frozenset[PolicyName] = frozenset({"prp"}) if key == "cluster_factor" else ADAPTIVE
            if entry.policy not in meant:
                what = f"it has no effect with the policy {entry.policy}"
                self._report(("pools", name, key), what, f"Remove it, or set `policy: {min(meant)}`")
        return Pool(name, entry.tracks, entry.policy, **options, place=place)

    def _feed(self, name: str, entry: FeedEntry) -> Feed:
        path = ("feeds", name)
        period_us, jitter_us = entry.period_us, entry.jitter_us
        if entry.arrival == "continuous":
            self._check_continuous(path, entry)
        elif period_us is None:
            remedy = (
                "Add the time between two files, such as `period: 5 minutes`, or set `arrival: continuous`"
            )
            self._report(path, "a feed of files has no `period`", remedy)
        elif jitter_us is not None and jitter_us > period_us:
            what = f"it is longer than the feed's period of {format_duration(period_us)}"
            self._report((*path, "jitter"), what, "Give at most the period")
        return Feed(
            name=name,
            arrival=entry.arrival,
            period_us=period_us,
            phase_us=entry.phase_us or 0,
            jitter_us=jitter_us or 0,
            timestamp_jitter_us=entry.timestamp_jitter_us or 0,
            landing=self._landing(path, entry),
            place=self._document.place(path),
        )

    def _landing(self, path: _Path, entry: FeedEntry) -> Landing:
        for key in ("header", "encoding"):
            if getattr(entry, key) is not None and entry.format != "csv" and entry.arrival == "files":
                what = "it has an effect on csv files only"
                self._report((*path, key), what, "Remove it, or set `format: csv`")
        return Landing(
            path=entry.path,
            format=entry.format,
            schema=entry.columns,
            timestamp=entry.timestamp,
            header=entry.header is not False,
            encoding=entry.encoding or "utf-8",
            name_timestamp=entry.name_timestamp,
            lateness_us=entry.lateness_us or 0,
            ahead_us=entry.ahead_us,
            after_load=entry.after_load or "keep",
        )

    def _check_continuous(self, path: _Path, entry: FeedEntry) -> None:
        only_files = {
            "jitter": entry.jitter_us,
            "timestamp_jitter": entry.timestamp_jitter_us,
            "header": entry.header,
            "encoding": entry.encoding,
            "name_timestamp": entry.name_timestamp,
            "lateness": entry.lateness_us,
            "ahead": entry.ahead_us,
            "after_load": entry.after_load,
        }
        useless = "it has no effect on a continuous feed"
        if entry.phase_us is not None:
            self._report((*path, "phase"), useless, "Move it to the tables that load the feed")
        for key, value in only_files.items():
            if value is not None:
                self._report((*path, key), useless, "Remove it, or set `arrival: files`")

    def _sources(self, name: str, entry: TableEntry) -> tuple[str, ...]:
        """The tables that a table reads, as they are called where they are defined."""
        path = ("tables", name)
        if entry.feed is not None:
            self._check_base(path, entry)
            return ()
        if entry.sql is None and entry.sources is None:
            self._unclear.add(name)
            remedy = "Add `feed` to make it a base table, or `sql` or `sources` to make it a derived one"
            self._report(path, "it has neither a feed nor sources", remedy)
            return ()
        if entry.select is not None:
            what = "it has no effect on a table that loads no feed"
            self._report((*path, "select"), what, "Make it part of the `sql`")
        read = self._read_sql((*path, "sql"), entry.sql) if entry.sql is not None else ()
        if entry.sources is None:
            return self._found(name, [((*path, "sql"), table) for table in read])
        declared = {table.lower() for table in entry.sources}
        for table in read:
            if table.lower() not in declared:
                what = f"it reads `{table}`, which `sources` does not name"
                self._report((*path, "sql"), what, "Add it to `sources`, or remove `sources`")
        return self._found(name, [((*path, "sources", i), table) for i, table in enumerate(entry.sources)])

    def _check_base(self, path: _Path, entry: TableEntry) -> None:
        if entry.sql is not None:
            remedy = "Remove `feed` or `sql`: a query over this table is another table"
            self._report((*path, "sql"), "a table that loads a feed cannot have SQL", remedy)
        if entry.sources is not None:
            self._report((*path, "sources"), _USELESS_ON_BASE, "Remove it")
        if entry.lookback_us is not None:
            self._report((*path, "lookback"), _USELESS_ON_BASE, "Remove it")
        if entry.lookback_trusted is not None:
            self._report((*path, "lookback_trusted"), _USELESS_ON_BASE, "Remove it")
        if entry.align_us is not None:
            self._report((*path, "align"), _USELESS_ON_BASE, "Remove it")
        if entry.timestamp is not None and entry.select is None:
            remedy = "Remove it: the column is that of the feed"
            self._report((*path, "timestamp"), "it has no effect without `select`", remedy)
        for table in self._read_sql((*path, "select"), entry.select) if entry.select is not None else ():
            if table.lower() != str(entry.feed).lower():
                what = f"it reads `{table}`, and may read only the feed of the table"
                self._report((*path, "select"), what, f"Read `{entry.feed}`; a query over tables is `sql`")

    def _read_sql(self, path: _Path, sql: str) -> tuple[str, ...]:
        try:
            return tables_read(sql)
        except InputError as error:
            self._unclear.add(str(path[1]))
            self._report(path, error.what, error.remedy)
            return ()

    def _found(self, reader: str, references: Sequence[tuple[_Path, str]]) -> tuple[str, ...]:
        """The tables that are referred to; what is wrong with a reference is reported at its path."""
        found: dict[str, None] = {}
        for path, reference in references:
            table = self._tables.find(reference)
            if table is None:
                self._unclear.add(reader)
                self._report(path, f"there is no table `{reference}`", self._no_table_remedy(reference))
            elif table == reader:
                self._report(path, "it reads itself", "Read another table, or give this one another name")
            elif table in found:
                self._report(path, f"it names `{table}` twice", "Remove one of the two")
            else:
                found[table] = None
        return tuple(found)

    def _no_table_remedy(self, reference: str) -> str:
        if self._feeds.has(reference):
            return f"It is a feed: add a table that loads it, `{reference}: {{feed: {reference}}}`"
        return self._tables.remedy(reference)

    def _order(self, sources: Mapping[str, Sequence[str]]) -> list[str]:
        graph = {name: [table for table in read if table in sources] for name, read in sources.items()}
        order = topological_order(graph)
        for cycle in cycles(graph, order):
            what = f"the tables read each other in a cycle, {' -> '.join((*cycle, cycle[0]))}"
            self._report(("tables", cycle[0]), what, "Remove one of these reads")
        return order

    def _find_release(self, name: str, sources: Sequence[str]) -> None:
        feed_name = self._file.tables[name].feed
        if feed_name is not None:
            feed = self._file.feeds.get(feed_name)
            if feed is not None:
                self._by_files[name] = feed.arrival == "files"
            return
        upstream = [self._by_files.get(source) for source in sources]
        if True in upstream:
            self._by_files[name] = True
        elif None not in upstream and name not in self._unclear:
            self._by_files[name] = False

    def _find_timestamp(self, name: str, sources: Sequence[str]) -> None:
        entry = self._file.tables[name]
        feed = self._file.feeds.get(entry.feed) if entry.feed is not None else None
        inherited = self._timestamps.get(sources[0]) if sources else feed.timestamp if feed else None
        self._timestamps[name] = entry.timestamp or inherited

    def _table(
        self, name: str, entry: TableEntry, sources: tuple[str, ...], feeds: Mapping[str, Feed]
    ) -> Table | None:
        pool = self._pool_of(name, entry)
        if entry.feed is None:
            period_us = self._derived_period(name, entry)
        else:
            period_us = self._base_period(name, entry, entry.feed, feeds)
        if pool is None or period_us is None:
            return None
        return Table(
            name=name,
            pool=pool,
            period_us=period_us,
            feed=entry.feed,
            sources=sources,
            sql=entry.sql,
            select=entry.select,
            timestamp=self._timestamps.get(name),
            lookback_us=entry.lookback_us or 0,
            lookback_trusted=entry.lookback_trusted is True,
            align_us=entry.align_us,
            phase_us=entry.phase_us or 0,
            target_lag_us=entry.target_lag_us,
            cost=_cost(entry.cost),
            late_after_us=entry.late_after_us,
            weight=Fraction(1) if entry.weight is None else entry.weight,
            place=self._document.place(("tables", name)),
        )

    def _pool_of(self, name: str, entry: TableEntry) -> str | None:
        path = ("tables", name)
        if not self._pools.all:
            return None  # that there is no pool is an error of its own
        if entry.pool is None:
            if len(self._pools.all) == 1:
                return self._pools.all[0]
            what = f"`pool` is missing, and there are {len(self._pools.all)} pools"
            self._report(path, what, f"Add `pool` with {one_of(self._pools.all)}")
        elif not self._pools.has(entry.pool):
            self._report((*path, "pool"), f"there is no pool `{entry.pool}`", self._pools.remedy(entry.pool))
        return entry.pool

    def _derived_period(self, name: str, entry: TableEntry) -> int | None:
        path = ("tables", name)
        is_derived = entry.sql is not None or entry.sources is not None
        if entry.period_us is None and is_derived:
            remedy = "Add the time between two updates, such as `period: 15 minutes`"
            self._report(path, "a derived table has no `period`", remedy)
        if entry.lookback_trusted and not entry.lookback_us:
            remedy = "Remove it, or add `lookback`"
            self._report((*path, "lookback_trusted"), "it has no effect without `lookback`", remedy)
        if entry.phase_us is not None and self._by_files.get(name):
            what = "it has no effect, for files upstream release this table"
            self._report((*path, "phase"), what, "Move it to the feeds upstream that deliver files")
        if entry.align_us is not None and entry.period_us is not None and entry.align_us > entry.period_us:
            what = f"it is longer than the table's period of {format_duration(entry.period_us)}"
            self._report((*path, "align"), what, "Give at most the period, or lengthen the period")
        return entry.period_us

    def _base_period(
        self, name: str, entry: TableEntry, feed_name: str, feeds: Mapping[str, Feed]
    ) -> int | None:
        path = ("tables", name)
        if not self._feeds.has(feed_name):
            self._report((*path, "feed"), f"there is no feed `{feed_name}`", self._feeds.remedy(feed_name))
        feed = feeds.get(feed_name)
        if feed is None:
            return None
        if feed.arrival == "continuous":
            if entry.period_us is None and feed.period_us is None:
                remedy = "Add `period` to the table or to the feed, such as `period: 5 minutes`"
                self._report(path, f"neither it nor its feed `{feed_name}` has a `period`", remedy)
            return entry.period_us or feed.period_us
        if entry.period_us is not None and feed.period_us not in (None, entry.period_us):
            what = f"it is not the period of its feed `{feed_name}`, {format_duration(feed.period_us)}"
            self._report((*path, "period"), what, "Remove it: each file of the feed is one update")
        if entry.phase_us is not None:
            what = "it has no effect on a table that loads a feed of files"
            self._report((*path, "phase"), what, f"Move it to the feed `{feed_name}`")
        return feed.period_us


def _cost(entry: CostEntry | None) -> Cost | None:
    return None if entry is None else Cost(entry.startup_us, entry.rate, entry.variability)
