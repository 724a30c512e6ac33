"""Random tables `a (ts, k, v)`, `b (ts, k, w)` and `c (ts, j, x)` in slices, for queries over them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.warehouse import Warehouse
from freshline.spark.answering.request_run import PreparedRequest
from freshline.spark.answering.sliced_query import readable
from freshline.spark.answering.window_reading import PreparedQuery
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.sink import write_by_driver
from freshline.spark.loading.slices import dealt, outliers_of, slice_column
from freshline.sql.request_sql import read_request
from freshline.storage.delta.stored_table import StoredTable

START_US: Final = 1_767_225_600 * SECOND  # 2026-01-01
_KEYS: Final = ("int", "bigint", "smallint", "decimal(9,2)")
# Doubles are quarters, so that they add up to the same in any order.
_VALUES: Final = ("int", "bigint", "decimal(12,3)", "double")
_COLUMNS: Final = {"a": ("k", "v"), "b": ("k", "w"), "c": ("j", "x")}

Row = tuple[int, int | None, float | None]  # instant in microseconds, key, value
Rows = Sequence[Row]


class SlicedTables:
    """Tables on disk, of a few updates each, and the same rows in memory."""

    def __init__(
        self,
        session: SparkSession,
        folder: Path,
        slices: Mapping[str, str],
        types: Mapping[str, tuple[str, str]],
        queries: Mapping[str, str],
        window_us: int,
    ) -> None:
        """`slices` by table, in YAML, "" for none; `types` of key and value; `queries` are SQL by name."""
        self.session = session
        self.warehouse = _warehouse(slices, types, queries, window_us)
        self.schemas: dict[str, StructType] = schemas(session, self.warehouse)
        self._types = types
        self.stored = {
            name: StoredTable.open_or_create(
                folder / name, name, to_arrow_schema(self.schemas[name], timezone="UTC"), "ts"
            )
            for name in self.warehouse.tables
        }
        self.rows: dict[str, list[Row]] = {name: [] for name in self.stored}

    def load(self, name: str, rows: Rows) -> None:
        """Loads rows into a table in one update."""
        self.rows[name] += rows
        self.write(name, self._frame(name, rows))

    def write(self, name: str, frame: DataFrame) -> None:
        """Loads rows of a Spark frame in one update."""
        stored, schema = self.stored[name], self.schemas[name]
        frame = frame.selectExpr("*", "false AS _late")
        table = self.warehouse.tables[name]
        frame = dealt(frame, slice_column(table, schema))
        folder = f"data/{stored.sequence + 1}"
        result = write_by_driver(frame, stored, folder, outliers_of(table))
        assert result.files is not None
        newest = [footer.newest for _, footer in result.files if footer.newest is not None]
        freshness = max([stored.freshness or 0, *newest])
        stored.commit(folder if result.files else None, freshness, (), {}, written=result.files)

    def prepared(self, query: str) -> PreparedQuery:
        return PreparedQuery(
            self.session, self.warehouse, self.warehouse.queries[query], self.stored, self.schemas
        )

    def asked(self, sql: str) -> PreparedRequest:
        request = read_request(sql, readable(self.warehouse, self.schemas))
        return PreparedRequest(self.session, request, self.schemas)

    def exact(self, query: str, to_us: int) -> DataFrame:
        """Spark's own answer, over the rows in memory."""
        asked = self.warehouse.queries[query]
        return self.exact_sql(asked.sql, to_us - asked.window_us, to_us)

    def exact_sql(self, sql: str, after_us: int = 0, to_us: int = 2 * START_US) -> DataFrame:
        """Spark's answer to any SQL, over the rows of that time."""
        for name, rows in self.rows.items():
            inside = [row for row in rows if after_us < row[0] <= to_us]
            self._frame(name, inside).createOrReplaceTempView(name)
        return self.session.sql(sql)

    def _frame(self, name: str, rows: Rows) -> DataFrame:
        key, value = _COLUMNS[name]
        frame = self.session.createDataFrame(list(rows), "us long, k long, v double")
        kinds = self._types[name]
        return frame.select(
            f.timestamp_micros("us").alias("ts"),
            f.col("k").cast(kinds[0]).alias(key),
            f.col("v").cast(kinds[1]).alias(value),
        )


def random_tables(
    session: SparkSession, folder: Path, seed: int, queries: Mapping[str, str], window_us: int
) -> SlicedTables:
    """Up to a few hundred rows a table within twenty seconds, with nulls; keys are few, many or one."""
    rng = random.Random(f"sliced tables:{seed}")
    types = {name: (rng.choice(_KEYS), rng.choice(_VALUES)) for name in _COLUMNS}
    ways = (
        "{{}}",
        "{{by: {key}}}",
        "{{by: {key}}}",
        "{{outliers: {value}}}",
        "{{by: {key}, outliers: {value}}}",
    )
    slices = {name: rng.choice(ways).format(key=key, value=value) for name, (key, value) in _COLUMNS.items()}
    tables = SlicedTables(session, folder, slices, types, queries, window_us)
    for name in _COLUMNS:
        for _ in range(rng.randint(0, 3)):
            tables.load(name, random_rows(rng, rng.choice([0, 1, 5, 60]), rng.choice([1, 4, 40])))
    return tables


def random_rows(rng: random.Random, count: int, keys: int) -> Rows:
    def key() -> int | None:
        return None if rng.random() < 0.1 else min(int(rng.expovariate(2 / keys)), keys - 1)

    def value() -> float | None:
        return None if rng.random() < 0.1 else rng.randrange(-8, 40) / 4

    return [(START_US + rng.randrange(20 * SECOND), key(), value()) for _ in range(count)]


def _warehouse(
    slices: Mapping[str, str],
    types: Mapping[str, tuple[str, str]],
    queries: Mapping[str, str],
    window_us: int,
) -> Warehouse:
    answers = ", answers: {tracks: 1, policy: lrm}" if queries else ""
    lines = ["name: sliced", f"pools: {{updates: {{tracks: 1}}{answers}}}", "feeds:"]
    for name, (key, value) in _COLUMNS.items():
        schema = f"ts timestamp, {key} {types[name][0]}, {value} {types[name][1]}"
        lines.append(
            f'  {name}: {{path: {name}, format: csv, schema: "{schema}", timestamp: ts, period: 1s}}'
        )
    lines.append("tables:")
    for name in _COLUMNS:
        dealt_by = f", slices: {slices[name]}" if slices[name] else ""
        lines.append(f"  {name}: {{feed: {name}, pool: updates{dealt_by}}}")
    if queries:
        lines.append("queries:")
    when = f"window: {window_us}us, stride: 1s, pool: answers"
    lines += [f"  {name}: {{sql: {json.dumps(sql)}, {when}}}" for name, sql in queries.items()]
    return loads("\n".join(lines))
