"""Checks that random derived tables, updated step by step, equal their queries: on Spark, in memory."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from math import lcm
from typing import Any, Final, Literal

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from freshline.base.duration import MILLISECOND, SECOND
from freshline.base.errors import InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads
from freshline.definitions.sections.tables import Table
from freshline.spark.loading.frames import between, derived_rows
from freshline.sql.checks import QueryCheck
from freshline.sql.columns import LATE_COLUMN
from freshline.sql.query import parse_query
from freshline.sql.time import Relation, Time
from freshline_lab.campaigns.sql.statements import Statements

# Settings that make small queries quick: most of their time would go into compilation.
QUICK: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
# Half of the records are of one day and half of the next: windows of all lengths have an edge between.
_MIDNIGHT: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
_SPAN_US: Final = 40 * SECOND
_SOURCES: Final = {
    "a": Relation(("ts", "k", "v"), {"ts": Time()}),
    "b": Relation(("at", "k", "w"), {"at": Time()}),
}
_PROJECT: Final = """\
name: equality
pools: {updates: {tracks: 1}}
feeds:
  a: {period: 1s, path: in/a, format: csv, schema: "ts timestamp, k string, v long", timestamp: ts}
  b: {period: 1s, path: in/b, format: csv, schema: "at timestamp, k string, w long", timestamp: at}
tables:
  a: {feed: a}
  b: {feed: b}
"""

Outcome = Literal["refused", "not for Spark", "equal", "different"]


@dataclass(frozen=True, slots=True)
class StatementCase:
    """A statement, the keys of its table, and the outcome."""

    sql: str
    keys: str
    outcome: Outcome
    rows: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The records of two base tables, and the freshness that a derived table had after each update."""

    sources: Mapping[str, DataFrame]
    updates: Sequence[int]


def check_statement(session: SparkSession, seed: str) -> StatementCase:
    """One random statement: it is refused, or has the same rows for any history of updates."""
    rng = random.Random(f"case:{seed}")
    sql = Statements(seed).next()
    keys = random_keys(sql, rng)
    try:
        table = accepted(sql, keys)
    except InputError as error:
        return StatementCase(sql, keys, "refused", why=str(error))
    try:
        found, expected = computed(session, table, random_history(session, table, rng))
    except (PySparkException, Py4JJavaError) as error:
        return StatementCase(sql, keys, "not for Spark", why=str(error).splitlines()[0])
    if found == expected:
        return StatementCase(sql, keys, "equal", found.total())
    missing, extra = expected - found, found - expected
    why = f"{missing.total()} rows are missing, {extra.total()} should not be there: {missing} {extra}"
    return StatementCase(sql, keys, "different", found.total(), why)


def accepted(sql: str, keys: str) -> Table:
    """The derived table of a statement; an `InputError` if its rows cannot only be appended."""
    warehouse = loads(
        f"{_PROJECT}  t: {{period: 3d, timestamp: ts, refresh: append, {keys}sql: {json.dumps(sql)}}}\n"
    )
    check_runnable(warehouse)
    return warehouse.tables["t"]


def random_keys(sql: str, rng: random.Random) -> str:
    """`align` and `lookback`: mostly the least that would be accepted, if there is one."""
    check = QueryCheck(parse_query(sql), _SOURCES)
    if not check.errors:
        check.timestamp("ts")
    align_us = lcm(*check.windows) if check.windows else 0
    lookback_us = check.result.reach_us or 0
    if rng.random() < 0.3:
        align_us = rng.choice([0, align_us * 2, SECOND, 2 * SECOND, 10 * SECOND])
    if rng.random() < 0.3:
        lookback_us = rng.choice([lookback_us + 1, lookback_us * 2, rng.randrange(10 * SECOND), SECOND])
    align = f"align: {align_us}us, " if align_us else ""
    return align + (f"lookback: {lookback_us}us, " if lookback_us else "")


def random_history(session: SparkSession, table: Table, rng: random.Random) -> TableHistory:
    """Records at the edges of seconds and between them, some late, with a gap; and random updates."""
    gap = rng.randrange(-_SPAN_US, _SPAN_US)
    gap_us = rng.choice([0, 5, 20]) * SECOND

    def moment() -> int:
        whole_us = rng.randrange(-_SPAN_US // SECOND, _SPAN_US // SECOND) * SECOND
        part_us = rng.choice([0, 0, 1, SECOND - 1, SECOND // 2, rng.randrange(1_000) * MILLISECOND])
        at = whole_us + part_us
        return _MIDNIGHT + (at if not gap <= at < gap + gap_us else gap - 1)

    sources = {}
    for name, column in (("a", "ts"), ("b", "at")):
        moments = [moment() for _ in range(rng.randint(15, 30))]
        moments += rng.sample(moments, 4)
        rows = [(each, rng.choice("xyz"), rng.randrange(6), rng.random() < 0.1) for each in moments]
        value = "v" if name == "a" else "w"
        frame = session.createDataFrame(rows, f"us long, k string, {value} long, {LATE_COLUMN} boolean")
        sources[name] = frame.select(f.timestamp_micros("us").alias(column), "k", value, LATE_COLUMN)
    # The last update takes everything; there may be some before it.
    step_us = table.align_us or 1
    ends = sorted(rng.randrange(_MIDNIGHT - _SPAN_US, _MIDNIGHT + _SPAN_US) for _ in range(rng.randint(1, 4)))
    edges = [end // step_us * step_us - 1 for end in ends]
    last = -(-(_MIDNIGHT + _SPAN_US + SECOND) // step_us) * step_us - 1
    return TableHistory(sources, [*dict.fromkeys(edges), last])


def computed(session: SparkSession, table: Table, history: TableHistory) -> tuple[Counter[Any], Counter[Any]]:
    """A table's rows after the last two updates, and its query's result for both."""
    *before, last = range(len(history.updates))
    parts: list[DataFrame] = []
    after: int | None = None
    for number, to in enumerate(history.updates):
        start = None if after is None else after - table.lookback_us
        rows = derived_rows(session, table, _sources(history, start, to), after, to)
        parts.append(_tagged(rows, "found", number))
        if number in (last, *before[-1:]):
            everything = _query(session, table, _sources(history, None, to))
            parts.append(_tagged(everything, "expected", number))
        after = to
    found: Counter[Any] = Counter()
    expected: Counter[Any] = Counter()
    for side, number, *row in reduce(DataFrame.unionAll, parts).collect():
        if side == "expected":
            expected[number, *row] += 1
            continue
        found[last, *row] += 1
        if before and number != last:
            found[before[-1], *row] += 1
    return found, expected


def _sources(history: TableHistory, after: int | None, to: int) -> dict[str, DataFrame]:
    """What an update reads, as in `Updater`."""
    columns = {"a": "ts", "b": "at"}
    return {
        name: between(frame, columns[name], after, to).where(f"NOT {LATE_COLUMN}").drop(LATE_COLUMN)
        for name, frame in history.sources.items()
    }


def _query(session: SparkSession, table: Table, sources: Mapping[str, DataFrame]) -> DataFrame:
    assert table.sql is not None
    for name, frame in sources.items():
        frame.createOrReplaceTempView(name)
    return session.sql(table.sql)


def _tagged(rows: DataFrame, side: str, number: int) -> DataFrame:
    columns = (f.col(f"`{name}`").cast("string") for name in rows.columns)
    return rows.select(f.lit(side).alias("side"), f.lit(number).alias("number"), *columns)
