"""The section `queries`: continuous queries, answered over a window of time once in every stride."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

from pydantic import ConfigDict, Field

from freshline.base.duration import format_duration
from freshline.base.errors import NOWHERE, InputError, Place
from freshline.base.names import close_match, cut, is_name, one_of
from freshline.definitions.language.policies import as_written, policies_for
from freshline.definitions.language.section import Path, Resolution, Section
from freshline.definitions.language.values import (
    Duration,
    Entry,
    Given,
    PositiveDuration,
    PositiveNumber,
    PositiveShare,
    Share,
    Text,
)
from freshline.definitions.sections.answer_columns import check_answer_columns
from freshline.definitions.sections.cost import Cost, CostEntry, cost_from_record
from freshline.definitions.sections.feeds import FEEDS
from freshline.definitions.sections.nodes import NODES
from freshline.definitions.sections.pools import POOLS
from freshline.definitions.sections.readable import readable_tables
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.sections.tables import TABLES
from freshline.sql.from_tables import ReadableTable
from freshline.sql.operator_records import operator_of, operator_record
from freshline.sql.operators import Operator
from freshline.sql.query import tables_named
from freshline.sql.query_sql import QuerySql, answer_columns, read_query

_ANOTHER_POOL: Final = (
    f"Add a pool for queries, with {as_written(policies_for('queries'))}, such as "
    "`answers: {tracks: 1, policy: lrm}`"
)


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A table as a query's FROM reads it: in slices, or whole in every part."""

    alias: str  # its name in the SQL, in lower case
    table: str
    in_slices: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query with an answer in every stride, over the last window of its tables."""

    name: str
    sql: str
    pool: str
    window_us: int
    stride_us: int
    deadline_us: int  # after the release, at most the stride
    weight: Fraction = Fraction(1)
    keep_least: Fraction = Fraction(0)  # the least share of its window that it must read
    cost: Cost | None = None  # of an answer over a window; None: estimated from its operators, or learned
    selectivity: Fraction | None = None  # as declared: rows of the answer per row read
    part_us: int | None = None  # the longest stretch without an interruption; None: the default
    into: str | None = None  # a table for its answers
    tables: tuple[str, ...] = ()  # the tables that it reads, each once
    sides: tuple[QuerySource, ...] = ()  # of its FROM, in order
    operators: Operator | None = None  # its operator tree; never None in a loaded warehouse
    place: Place = NOWHERE


class QueryEntry(Entry):
    """A query with an answer in every stride, over the last window of the tables that it reads."""

    model_config = ConfigDict(title="Query")

    sql: Text = Field(
        description="The query over tables: conditions, columns, joins of two or three, count, sum, avg, min "
        "and max, GROUP BY.",
        examples=["SELECT src, sum(bytes) AS bytes FROM packets GROUP BY src"],
    )
    window_us: PositiveDuration = Field(alias="window", description="The length of time that it reads.")
    stride_us: PositiveDuration = Field(alias="stride", description="The time between two answers.")
    deadline_us: Given[PositiveDuration] = Field(
        None,
        alias="deadline",
        description="The time from its release to the latest end of an answer, at most the stride (default: "
        "the stride).",
    )
    weight: Given[PositiveNumber] = Field(
        None, description="The weight of an error in its answers, relative to other queries (default 1)."
    )
    keep_least: Given[Share] = Field(
        None, description="The least share of its window that it must read (default 0)."
    )
    pool: Given[Text] = Field(
        None, description="The pool that answers it (default: the only one that can hold queries)."
    )
    cost: Given[CostEntry] = Field(
        None,
        description="What an answer costs: startup + rate × window (default: what its operators cost over "
        "the `rows` of the feeds).",
    )
    selectivity: Given[PositiveShare] = Field(
        None, description="Rows of an answer for each row that is read (default: by its operators)."
    )
    part_us: Given[Duration] = Field(
        None,
        alias="part",
        description="The longest stretch of its work that is not interrupted for more urgent queries "
        "(default: a quarter of the shortest deadline among those).",
    )
    into: Given[Text] = Field(None, description="A new table that stores its answers.")


def _resolve(resolution: Resolution) -> dict[str, Any]:
    return {"queries": _Rules(resolution).queries()}


class _Rules:
    """Fills in defaults, resolves references, and collects errors."""

    def __init__(self, resolution: Resolution) -> None:
        self._resolution = resolution
        self._report = resolution.report
        self._entries = resolution.entries(QUERIES)
        sections: tuple[Section[Any, Any], ...] = (FEEDS, TABLES, QUERIES)
        self._names = {section.name: resolution.names(section) for section in sections}
        tables, self._pools = resolution.records(TABLES), resolution.records(POOLS)
        self._tables: dict[str, StoredDefinition] = {**resolution.fields["steps"], **tables}
        self._pools_with_tables = {table.pool for table in tables.values()}
        sliced = [name for name, table in self._tables.items() if table.slices is not None]
        wanted = [*sliced, *self._mentioned()] if self._entries else sliced
        order = resolution.fields["step_order"] + resolution.fields["topological_order"]
        feeds = resolution.records(FEEDS)
        self._readable = readable_tables(wanted, self._tables, feeds, order) if wanted else {}
        for name in sliced:
            self._check_slices(self._tables[name])

    def queries(self) -> dict[str, Query]:
        made = (self._query(name, entry) for name, entry in self._entries.items())
        queries = {query.name: query for query in made if query is not None}
        self._check_answers()
        return queries

    def _mentioned(self) -> Iterator[str]:
        for entry in self._entries.values():
            try:
                names = tables_named(entry.sql)
            except InputError:
                continue  # it is read once more later, and reported then
            yield from (found for name in names if (found := self._names["tables"].find(name)) is not None)

    def _check_slices(self, table: StoredDefinition) -> None:
        columns = self._readable[table.name].columns if table.name in self._readable else None
        slices = table.slices
        if slices is None or columns is None:
            return
        for key, name in (("by", slices.by), ("outliers", slices.outliers)):
            if name is None or name.lower() in columns:
                continue
            meant = close_match(name, columns)
            listed = f"Name one of its columns: {', '.join(columns)}"
            remedy = f"Perhaps `{meant}` is meant" if meant else listed
            self._report(("tables", table.name, "slices", key), f"the table has no column `{name}`", remedy)

    def _query(self, name: str, entry: QueryEntry) -> Query | None:
        path = ("queries", name)
        self._check_name(path, name)
        if entry.cost is not None and entry.cost.per_row_us:
            what = "it has no effect on a query"
            self._report((*path, "cost", "per_row"), what, "Use `rate`, seconds of work a second of window")
        pool = self._pool_of(path, entry)
        deadline_us = entry.deadline_us or entry.stride_us
        if deadline_us > entry.stride_us:
            what = f"it is beyond the stride of {format_duration(entry.stride_us)}"
            self._report((*path, "deadline"), what, "Give at most the stride, or lengthen the stride")
        sql = self._read(path, entry)
        if pool is None or sql is None:
            return None
        in_slices = self._sides(path, sql)
        return Query(
            name=name,
            sql=entry.sql,
            pool=pool,
            window_us=entry.window_us,
            stride_us=entry.stride_us,
            deadline_us=deadline_us,
            weight=Fraction(1) if entry.weight is None else entry.weight,
            keep_least=entry.keep_least or Fraction(0),
            cost=None if entry.cost is None else entry.cost.resolved(),
            selectivity=entry.selectivity,
            part_us=entry.part_us,
            into=entry.into,
            tables=tuple(dict.fromkeys(side.table for side in in_slices)),
            sides=in_slices,
            operators=sql.operators(entry.selectivity),
            place=self._resolution.place(path),
        )

    def _check_name(self, path: Path, name: str) -> None:
        table = self._names["tables"].find(name)
        if table is not None:
            line = self._resolution.place(("tables", table)).line
            self._report(
                path, f"it has the same name as the table `{table}` of line {line}", "Rename one of the two"
            )

    def _read(self, path: Path, entry: QueryEntry) -> QuerySql | None:
        """The analysed SQL; None if it is invalid, or if a table that it reads is."""
        try:
            named = [self._names["tables"].find(name) for name in tables_named(entry.sql)]
            if any(name is not None and name not in self._readable for name in named):
                return None
            sql = read_query(entry.sql, self._find)
            if entry.into is not None:
                check_answer_columns(*answer_columns(sql))
        except InputError as error:
            self._report((*path, "sql"), error.what, error.remedy)
            return None
        return sql

    def _find(self, reference: str) -> ReadableTable:
        name = self._names["tables"].find(reference)
        if name is not None:
            if self._tables[name].is_whole:
                what = f"it reads `{name}`, which is computed whole: its rows in the window may change"
                raise InputError(what, "Read the tables that it reads, or ask it by a request")
            return self._readable[name]
        remedy = self._names["tables"].remedy(reference)
        if self._names["queries"].has(reference):
            remedy = "It is a query: read the tables that it reads"
        elif self._names["feeds"].has(reference):
            loading = f"{reference}: {{feed: {reference}, slices: {{}}}}"
            remedy = f"It is a feed: add a table that loads it, `{loading}`"
        raise InputError(f"there is no table `{reference}`", remedy)

    def _sides(self, path: Path, sql: QuerySql) -> tuple[QuerySource, ...]:
        try:
            in_slices = sql.in_slices()
        except InputError as error:
            self._report((*path, "sql"), error.what, error.remedy)
            in_slices = frozenset()
        return tuple(
            QuerySource(each.alias, each.table.name, place in in_slices)
            for place, each in enumerate(sql.tables.all)
        )

    def _pool_of(self, path: Path, entry: QueryEntry) -> str | None:
        pools = self._resolution.names(POOLS)
        with_tables = self._pools_with_tables
        if not pools.all:
            if self._resolution.names(NODES).all:
                self._report(path, "there is no pool that it could run in", _ANOTHER_POOL)
            return None  # otherwise the missing pools are an error of their own
        if entry.pool is None:
            free = [
                name for name, pool in self._pools.items()
                if pool.may_hold("queries") and name not in with_tables
            ]  # fmt: skip
            if len(free) == 1:
                return free[0]
            if free:
                what = f"`pool` is missing, and there are {len(free)} pools that can hold queries"
                self._report(path, what, f"Add `pool` with {one_of(free)}")
            elif len(self._pools) == len(pools.all):
                self._report(path, "no pool can hold queries", _ANOTHER_POOL)
            return None
        pool = self._pools.get(entry.pool)
        if not pools.has(entry.pool):
            self._report((*path, "pool"), f"there is no pool `{entry.pool}`", pools.remedy(entry.pool))
        elif pool is not None and not pool.may_hold("queries"):
            what = f"the pool `{pool.name}` has `policy: {pool.policy}`, which is for tables"
            self._report((*path, "pool"), what, _ANOTHER_POOL)
        elif pool is not None and pool.name in with_tables:
            what = f"the pool `{pool.name}` holds tables, and a pool holds tables or queries"
            self._report((*path, "pool"), what, _ANOTHER_POOL)
        return entry.pool

    def _check_answers(self) -> None:
        """Checks that every table of answers belongs to one query and that its name is unique."""
        taken: dict[str, str] = {}
        for kind, names in self._names.items():
            one = "query" if kind == "queries" else kind.removesuffix("s")
            taken |= {name.lower(): f"{one} `{name}`" for name in names.all}
        for name, entry in self._entries.items():
            if entry.into is None:
                continue
            path = ("queries", name, "into")
            owner = None if entry.into.lower() == name.lower() else taken.get(entry.into.lower())
            if not is_name(entry.into):
                remedy = "Begin with a-z, A-Z or _, and go on with up to 127 of a-z, A-Z, 0-9 and _"
                self._report(path, f"`{cut(entry.into)}` cannot be a name", remedy)
            elif owner is not None:
                self._report(path, f"it is the name of the {owner}", "Give it a name of its own")
            else:
                taken[entry.into.lower()] = f"answers of `{name}`"


def _to_record(query: Query) -> dict[str, Any]:
    operators = None if query.operators is None else operator_record(query.operators)
    return {**asdict(query), "operators": operators}


def _from_record(record: dict[str, Any]) -> Query:
    selectivity = record["selectivity"]
    read = {
        "weight": Fraction(record["weight"]),
        "keep_least": Fraction(record["keep_least"]),
        "cost": cost_from_record(record["cost"]),
        "selectivity": None if selectivity is None else Fraction(selectivity),
        "tables": tuple(record["tables"]),
        "sides": tuple(QuerySource(**side) for side in record["sides"]),
        "operators": None if record["operators"] is None else operator_of(record["operators"]),
    }
    return Query(**{**record, **read})


QUERIES: Final = Section(
    "queries",
    QueryEntry,
    _resolve,
    _from_record,
    missing={
        "sql": "Add the query, such as `sql: SELECT src, sum(bytes) AS bytes FROM packets GROUP BY src`",
        "window": "Add the length of time that it reads, such as `window: 1 minute`",
        "stride": "Add the time between two answers, such as `stride: 10s`",
    },
    description="The continuous queries, by name.",
    to_record=_to_record,
)
