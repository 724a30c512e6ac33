"""Updates of made-up rows, before the first real one: a cold JVM takes ten times as long."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from pathlib import Path
from threading import Lock
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    BooleanType,
    DataType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

from freshline.base.duration import SECOND
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.spark.loading.frames import (
    ObservedRecords,
    base_rows,
    derived_rows,
    keeps_records,
    late_expression,
    read_files,
    read_parquet,
    source_rows,
    whole_source_rows,
)
from freshline.spark.loading.shedding import kept_records
from freshline.spark.loading.slices import dealt, slice_column

_ROWS: Final = 10_000
_RUNS_MAX: Final = 3
# If a run takes more than this share of the last one's time, the next would gain little.
_WARM: Final = 0.8


class WarmUp:
    """Does the work of updates with made-up rows, without writing a table. Threads may share it.

    Executors write the made-up rows once, as they write large results. The updates' results come back to the
    driver as small results, which most are.
    """

    def __init__(self, warehouse: Warehouse, schemas: Mapping[str, StructType], folder: Path) -> None:
        self._warehouse = warehouse
        self._schemas = schemas
        self._folder = folder
        self._lock = Lock()  # protects the next attribute
        self._made: defaultdict[Path, Lock] = defaultdict(Lock)  # a folder is held until its rows are in it

    def run(self, session: SparkSession, name: str, may_go_on: Callable[[], bool] = lambda: True) -> None:
        """Runs updates of a table until they no longer become faster."""
        table = self._warehouse.stored[name]
        self._make_up(session, table)
        before_s = inf
        for _ in range(_RUNS_MAX):
            if not may_go_on():
                return
            started = time.perf_counter()
            rows = self._rows(session, table)
            dealt(rows, slice_column(table, self._schemas[name])).toArrow()
            took_s = time.perf_counter() - started
            if took_s > _WARM * before_s:
                return
            before_s = took_s

    def _make_up(self, session: SparkSession, table: StoredDefinition) -> None:
        """Makes up the rows that the table loads; other tables may load the same."""
        if table.feed is not None:
            feed = self._warehouse.feeds[table.feed]
            self._make(self._path(feed.name, "feeds"), partial(write_made_up, session, feed))
        for source in table.sources:
            self._make(self._path(source), partial(_write_table, session, self._schemas[source]))

    def _make(self, path: Path, write: Callable[[Path], None]) -> None:
        with self._lock:
            made = self._made[path]
        with made:
            if not path.exists():
                write(path)

    def _path(self, name: str, kind: str = "tables") -> Path:
        return self._folder / kind / name

    def _rows(self, session: SparkSession, table: StoredDefinition) -> DataFrame:
        if table.feed is None:
            sources = {source: self._source(session, source, table.is_whole) for source in table.sources}
            return derived_rows(session, table, sources, 0, _ROWS * SECOND)
        assert table.timestamp is not None
        feed = self._warehouse.feeds[table.feed]
        # No row is late, as in most updates: the expression is then a constant.
        late = late_expression(table.timestamp, 0, 1)
        records = read_files(session, feed, [str(self._path(feed.name, "feeds"))])
        if feed.shed is not None or not keeps_records(session, table, feed):
            assert feed.landing.timestamp is not None
            records = ObservedRecords(records, feed.landing.timestamp).records
        if feed.shed is not None:
            records = kept_records(records, feed)
        return base_rows(session, table, feed, records, late)

    def _source(self, session: SparkSession, name: str, is_whole: bool) -> DataFrame:
        timestamp = self._warehouse.stored[name].timestamp
        schema = self._schemas[name]
        rows = read_parquet(session, [str(self._path(name))], schema)
        if is_whole:
            return whole_source_rows(rows, schema, timestamp, _ROWS * SECOND)
        assert timestamp is not None
        return source_rows(rows, schema, timestamp, 0, _ROWS * SECOND)


def _write_table(session: SparkSession, schema: StructType, path: Path) -> None:
    _made_up(session, schema).coalesce(1).write.parquet(str(path))


def write_made_up(session: SparkSession, feed: Feed, path: Path) -> None:
    """Writes data files of made-up rows in the feed's format, in a folder of their own."""
    landing = feed.landing
    assert landing.schema is not None
    assert landing.format is not None
    columns = DataType.fromDDL(landing.schema)
    assert isinstance(columns, StructType)
    rows = _made_up(session, columns).coalesce(1)
    writer = rows.write.format(landing.format)
    if landing.format == "csv":
        writer = writer.option("header", landing.header).option("encoding", landing.encoding)
        writer = writer.option("sep", landing.delimiter)
    writer.save(str(path))


def _made_up(session: SparkSession, schema: StructType) -> DataFrame:
    return session.range(_ROWS).select(*(_value(field.dataType).alias(field.name) for field in schema.fields))


def _value(kind: DataType) -> Column:
    """A value of that type made from a number; null for types that are hard to make up."""
    number = f.col("id")
    if isinstance(kind, TimestampType):
        return f.timestamp_seconds(number)
    if isinstance(kind, StringType):
        return f.sha2(number.cast("string"), 256)
    if isinstance(kind, NumericType):
        return (number % 100 + 1).cast(kind)
    return (number % 2 == 0 if isinstance(kind, BooleanType) else f.lit(None)).cast(kind)
