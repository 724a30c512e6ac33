"""The section `tables`: base tables, which load a feed, and derived tables, which are queries over others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from freshline.base.duration import DAY, format_duration
from freshline.base.errors import NOWHERE, InputError, Place
from freshline.base.graph import cycles, topological_order
from freshline.base.names import one_of
from freshline.definitions.language.section import Path, Resolution, Section
from freshline.definitions.sections.cost import Cost, cost_from_record
from freshline.definitions.sections.discard import MISSING as DISCARD_MISSING
from freshline.definitions.sections.discard import Discard, resolved_discard
from freshline.definitions.sections.feed_columns import of_feed
from freshline.definitions.sections.feeds import FEEDS
from freshline.definitions.sections.nodes import NODES
from freshline.definitions.sections.pools import POOLS, of_queries
from freshline.definitions.sections.refresh import APPEND, Mode, Reason, Refresh, RefreshRules
from freshline.definitions.sections.steps import check_feeds, check_no_step, make_step, step_names
from freshline.definitions.sections.table_entry import TableEntry
from freshline.definitions.sections.table_sql import check_tables
from freshline.sql.query import tables_read
from freshline.sql.slices import Slices


@dataclass(frozen=True, slots=True)
class Table:
    """A base table (it has a feed) or a derived table (it has sources)."""

    name: str
    pool: str
    period_us: int
    feed: str | None = None
    sources: tuple[str, ...] = ()
    sql: str | None = None  # of a derived table
    select: str | None = None  # of a base table: SQL over its feed's columns
    timestamp: str | None = None  # the column; a base table has that of its feed unless `select` renames it
    lookback_us: int = 0  # how far before F the SQL of a derived table reads its sources
    lookback_trusted: bool = False  # the user declares that this is enough; the SQL does not show it
    align_us: int | None = None  # updates of a derived table end at the edges of windows of this length
    phase_us: int = 0  # of a table that is released periodically; otherwise 0
    target_lag_us: int | None = None
    cost: Cost | None = None
    late_after_us: int | None = None  # ΔF: a table that is further behind is late; the default is its bound
    weight: Fraction = Fraction(1)  # of several late tables, the one with the larger weight recovers first
    history_us: int = DAY  # how long its commits, and the files they need, are kept for readers
    place: Place = NOWHERE
    slices: Slices | None = None  # not None: continuous queries may read a part of it
    discard: Discard | None = None  # of a base table: files that change little may be skipped
    refresh: Mode = "append"  # "full": every update computes the table whole
    full_because: tuple[Reason, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every update computes the table whole, and replaces all its rows."""
        return self.refresh == "full"


class _Rules:
    """Fills in defaults, resolves references, and collects errors."""

    def __init__(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._report = resolution.report
        self._entries = resolution.entries(TABLES)
        self._feed_entries = resolution.entries(FEEDS)
        self._pools, self._feeds = resolution.names(POOLS), resolution.names(FEEDS)
        self._tables = resolution.names(TABLES)
        pools = resolution.records(POOLS)
        # Errors of a pool have been reported already.
        self._pools_of_tables = [
            name for name in self._pools.all if name not in pools or pools[name].may_hold("tables")
        ]
        self._unclear: set[str] = set()  # tables with sources that were not found
        self._by_files: dict[str, bool] = {}  # whether files upstream release a table, if that is known
        self._refresh = RefreshRules()

    def fields(self) -> dict[str, Any]:
        """The fields of the warehouse; they are complete if there are no errors."""
        entries = self._entries
        sources = {name: self._sources(name, entry) for name, entry in entries.items()}
        order = self._order(sources)
        steps = step_names(entries, sources)
        for name in order:
            self._find_release(name, sources[name])
            self._find_refresh(name, sources[name], name in steps)
        resolved = (
            self._table(name, entry, sources[name]) for name, entry in entries.items() if name not in steps
        )
        tables = {table.name: table for table in resolved if table is not None}
        made = {
            name: make_step(self._resolution, name, entry, sources[name], self._refresh.timestamps.get(name))
            for name, entry in entries.items()
            if name in steps
        }
        check_feeds(self._resolution, {step.feed for step in made.values() if step.feed is not None})
        by_files = {name for name, is_by_files in self._by_files.items() if is_by_files}
        return {
            "tables": tables,
            "topological_order": tuple(name for name in order if name not in steps),
            "released_by_files": frozenset(by_files - steps),
            "steps": made,
            "step_order": tuple(name for name in order if name in steps),
        }

    def _sources(self, name: str, entry: TableEntry) -> tuple[str, ...]:
        """The tables that a table reads, by their defined names."""
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
        if entry.slices is not None and entry.slices.outliers is not None:
            what = "a table that loads no feed has no outliers of its own"
            self._report((*path, "slices", "outliers"), what, "Remove it")
        read = self._read_sql((*path, "sql"), entry.sql) if entry.sql is not None else ()
        if entry.sources is None:
            return self._found(name, [((*path, "sql"), table) for table in read])
        declared = {table.lower() for table in entry.sources}
        for table in read:
            if table.lower() not in declared:
                what = f"it reads `{table}`, which `sources` does not name"
                self._report((*path, "sql"), what, "Add it to `sources`, or remove `sources`")
        return self._found(name, [((*path, "sources", i), table) for i, table in enumerate(entry.sources)])

    def _check_base(self, path: Path, entry: TableEntry) -> None:
        if entry.sql is not None:
            remedy = "Remove `feed` or `sql`: a query over this table is another table"
            self._report((*path, "sql"), "a table that loads a feed cannot have SQL", remedy)
        only_derived = {
            "sources": entry.sources,
            "lookback": entry.lookback_us,
            "lookback_trusted": entry.lookback_trusted,
            "align": entry.align_us,
            "refresh": entry.refresh,
        }
        for key, value in only_derived.items():
            if value is not None:
                self._report((*path, key), "it has no effect on a table that loads a feed", "Remove it")
        if entry.timestamp is not None and entry.select is None:
            remedy = "Remove it: the column is that of the feed"
            self._report((*path, "timestamp"), "it has no effect without `select`", remedy)
        for table in self._read_sql((*path, "select"), entry.select) if entry.select is not None else ():
            if table.lower() != str(entry.feed).lower():
                what = f"it reads `{table}`, and may read only the feed of the table"
                self._report((*path, "select"), what, f"Read `{entry.feed}`; a query over tables is `sql`")

    def _read_sql(self, path: Path, sql: str) -> tuple[str, ...]:
        try:
            return tables_read(sql)
        except InputError as error:
            self._unclear.add(str(path[1]))
            self._report(path, error.what, error.remedy)
            return ()

    def _found(self, reader: str, references: Sequence[tuple[Path, str]]) -> tuple[str, ...]:
        """The tables that the references name; reports the errors of a reference at its path."""
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
        feed_name = self._entries[name].feed
        if feed_name is not None:
            feed = self._feed_entries.get(feed_name)
            if feed is not None:
                self._by_files[name] = feed.arrival == "files"
            return
        upstream = [self._by_files.get(source) for source in sources]
        if True in upstream:
            self._by_files[name] = True
        elif None not in upstream and name not in self._unclear:
            self._by_files[name] = False

    def _find_refresh(self, name: str, sources: Sequence[str], is_step: bool) -> None:
        entry = self._entries[name]
        if entry.feed is None:
            self._refresh.add_derived(name, entry, sources, is_step)
            return
        feed = self._feed_entries.get(entry.feed)
        columns = of_feed(self._resolution.records(FEEDS).get(entry.feed))
        self._refresh.add_base(name, entry, columns, feed.timestamp if feed else None)

    def _table(self, name: str, entry: TableEntry, sources: tuple[str, ...]) -> Table | None:
        refresh = self._refresh.refreshes.get(name, APPEND)
        check_no_step(self._resolution, name, entry, refresh.mode == "full")
        self._check_refresh(name, entry, refresh)
        pool = self._pool_of(name, entry)
        if entry.feed is None:
            period_us = self._derived_period(name, entry)
        else:
            period_us = self._base_period(name, entry, entry.feed)
        if pool is None or period_us is None:
            return None
        if entry.feed is not None:
            self._check_node(name, pool, entry.feed)
        return Table(
            name=name,
            pool=pool,
            period_us=period_us,
            feed=entry.feed,
            sources=sources,
            sql=entry.sql,
            select=entry.select,
            timestamp=self._refresh.timestamps.get(name),
            lookback_us=entry.lookback_us or 0,
            lookback_trusted=entry.lookback_trusted is True,
            align_us=entry.align_us,
            phase_us=entry.phase_us or 0,
            target_lag_us=entry.target_lag_us,
            cost=None if entry.cost is None else entry.cost.resolved(),
            late_after_us=entry.late_after_us,
            weight=Fraction(1) if entry.weight is None else entry.weight,
            history_us=entry.history_us or self._resolution.history_us or DAY,
            place=self._resolution.place(("tables", name)),
            slices=None if entry.slices is None else entry.slices.resolved(),
            discard=resolved_discard(self._resolution, name, entry, pool),
            refresh=refresh.mode,
            full_because=refresh.because,
        )

    def _check_refresh(self, name: str, entry: TableEntry, refresh: Refresh) -> None:
        for what, remedy in refresh.because if entry.refresh == "append" else ():
            self._report(("tables", name, "sql"), what, f"{remedy}; or remove `refresh: append`")

    def _pool_of(self, name: str, entry: TableEntry) -> str | None:
        path = ("tables", name)
        if not self._pools.all:
            if self._resolution.names(NODES).all:
                remedy = "Add one, such as `pools: {updates: {tracks: 1}}`, or a `deadline` downstream"
                self._report(path, "there is no pool for a table that is no step", remedy)
            return None  # otherwise the missing pools are an error of their own
        of_tables = self._pools_of_tables
        if entry.pool is None:
            if len(of_tables) == 1:
                return of_tables[0]
            if len(self._resolution.records(POOLS)) < len(self._pools.all):
                return None  # the pools of tables are not clear until the invalid ones are corrected
            of = " of tables" if len(of_tables) < len(self._pools.all) else ""
            what = f"`pool` is missing, and there are {len(of_tables)} pools{of}"
            remedy = f"Add `pool` with {one_of(of_tables)}" if of_tables else "Add one with `policy: edf`"
            self._report(path, what, remedy)
        elif not self._pools.has(entry.pool):
            self._report((*path, "pool"), f"there is no pool `{entry.pool}`", self._pools.remedy(entry.pool))
        elif entry.pool not in of_tables:
            pool = self._resolution.records(POOLS)[entry.pool]
            what = f"the pool `{entry.pool}` ({of_queries(pool)}) is for queries"
            self._report((*path, "pool"), what, "Name a pool of tables, such as one with `policy: edf`")
        return entry.pool

    def _derived_period(self, name: str, entry: TableEntry) -> int | None:
        path = ("tables", name)
        is_derived = entry.sql is not None or entry.sources is not None
        if entry.period_us is None and is_derived:
            remedy = "Add the time between two updates, such as `period: 15 minutes`"
            if self._resolution.names(NODES).all:
                remedy += ", or a `deadline` to make it an output"
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

    def _base_period(self, name: str, entry: TableEntry, feed_name: str) -> int | None:
        path = ("tables", name)
        if not self._feeds.has(feed_name):
            self._report((*path, "feed"), f"there is no feed `{feed_name}`", self._feeds.remedy(feed_name))
        feed = self._resolution.records(FEEDS).get(feed_name)
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

    def _check_node(self, name: str, pool_name: str, feed_name: str) -> None:
        """Checks that a base table runs on the node where its feed's files land."""
        pool = self._resolution.records(POOLS).get(pool_name)
        feed = self._resolution.records(FEEDS).get(feed_name)
        if pool and feed and feed.node is not None and pool.node != feed.node:
            what = f"its feed `{feed_name}` is on the node `{feed.node}`, and its pool on `{pool.node}`"
            self._report(("tables", name), what, f"Give it a pool with `node: {feed.node}`")


def _resolve(resolution: Resolution) -> dict[str, Any]:
    return _Rules(resolution).fields()


def _from_record(record: dict[str, Any]) -> Table:
    cost = cost_from_record(record["cost"])
    weight = Fraction(record.get("weight", 1))
    slices = None if record.get("slices") is None else Slices(**record["slices"])
    discard = None if record.get("discard") is None else Discard(**record["discard"])
    because = tuple(tuple(each) for each in record.get("full_because", ()))
    known = {"sources": tuple(record["sources"]), "cost": cost, "weight": weight, "slices": slices}
    return Table(**{**record, **known, "discard": discard, "full_because": because})


TABLES: Final = Section(
    "tables",
    TableEntry,
    _resolve,
    _from_record,
    check_tables,
    is_needed=True,
    missing={"tables": "Add a table, such as `tables: {packets: {feed: packets}}`", **DISCARD_MISSING},
    description="The tables, by name.",
)
