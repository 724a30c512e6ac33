"""Updates of made-up rows, before the first real one: a cold JVM takes ten times as long."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from queue import Queue
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
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

from freshline.definitions.columns import RESERVED_COLUMNS
from freshline.definitions.duration import SECOND
from freshline.definitions.feeds import Feed
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.spark.frames import (
    Watched,
    base_rows,
    derived_rows,
    keeps_records,
    late_expression,
    read_files,
)
from freshline.spark.slices import dealt, slice_column

# Beyond these there is nothing new to compile that would be worth waiting for.
_TABLES_MAX: Final = 12
_ROWS: Final = 10_000
_ROUNDS_MAX: Final = 3
# A round that took more of the last one's time than this says that the next would gain little.
_WARM: Final = 0.8
_logger = logging.getLogger(__name__)

_Rows = Callable[[SparkSession], DataFrame]  # a table's, in a session


def warm_up(
    session: SparkSession,
    warehouse: Warehouse,
    schemas: Mapping[str, StructType],
    folder: Path,
    tracks: int,
) -> None:
    """Reads, transforms and writes made-up rows for the first tables, in a folder that is removed again.

    As many at a time as there are tracks, each in a session of its own, as updates are later on.
    """
    try:
        updates = _updates(session, warehouse, schemas, folder / "in")
        before_s = inf
        for number in range(_ROUNDS_MAX):
            started = time.perf_counter()
            # As executors write them, once; then as small results are written, which most are.
            _round(session, updates, folder / "out" if number == 0 else None, tracks)
            took_s = time.perf_counter() - started
            if took_s > _WARM * before_s:
                break
            before_s = took_s
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _updates(
    session: SparkSession, warehouse: Warehouse, schemas: Mapping[str, StructType], folder: Path
) -> dict[str, _Rows]:
    """What an update of each table does with its rows."""
    updates: dict[str, _Rows] = {}
    for table in list(warehouse.tables.values())[:_TABLES_MAX]:
        if table.feed is not None:
            feed = warehouse.feeds[table.feed]
            path = folder / table.feed
            if not path.exists():
                write_made_up(session, feed, path)
            rows: _Rows = partial(_base, table, feed, path)
        else:
            rows = partial(_derived, table, schemas)
        updates[table.name] = partial(_dealt, rows, slice_column(table, schemas[table.name]))
    return updates


def _round(session: SparkSession, updates: Mapping[str, _Rows], folder: Path | None, tracks: int) -> None:
    sessions: Queue[SparkSession] = Queue()
    for _ in range(tracks):
        sessions.put(session.newSession())

    def update(name: str) -> None:
        own = sessions.get()
        try:
            rows = updates[name](own)
            if folder is None:
                rows.toArrow()
            else:
                rows.write.parquet(str(folder / name))
        except (PySparkException, Py4JError, OSError) as error:
            # Of made-up rows not everything can be computed: that is no reason not to start.
            _logger.debug("not warmed up: %s: %s", name, error)
        finally:
            sessions.put(own)

    executor = ThreadPoolExecutor(tracks)
    try:
        list(executor.map(update, updates))
    finally:
        # Whoever is interrupted does not wait for the rest: it fails when Spark ends.
        executor.shutdown(wait=False, cancel_futures=True)


def _base(table: Table, feed: Feed, path: Path, session: SparkSession) -> DataFrame:
    assert table.timestamp is not None
    # No row is late, as with most updates: the expression is then a constant.
    late = late_expression(table.timestamp, 0, 1)
    records = read_files(session, feed, [str(path)])
    if not keeps_records(session, table, feed):
        assert feed.landing.timestamp is not None
        records = Watched(records, feed.landing.timestamp).records
    return base_rows(session, table, feed, records, late)


def _derived(table: Table, schemas: Mapping[str, StructType], session: SparkSession) -> DataFrame:
    sources = {name: _made_up(session, schemas[name]).drop(*RESERVED_COLUMNS) for name in table.sources}
    return derived_rows(session, table, sources, 0, _ROWS * SECOND)


def _dealt(rows: _Rows, slices: str | None, session: SparkSession) -> DataFrame:
    return dealt(rows(session), slices)


def write_made_up(session: SparkSession, feed: Feed, path: Path) -> None:
    """Data files as the feed has them, of made-up rows, in a folder of their own."""
    landing = feed.landing
    assert landing.schema is not None
    assert landing.format is not None
    columns = session.createDataFrame([], landing.schema).schema
    rows = _made_up(session, columns).coalesce(1)
    writer = rows.write.format(landing.format)
    if landing.format == "csv":
        writer = writer.option("header", landing.header).option("encoding", landing.encoding)
    writer.save(str(path))


def _made_up(session: SparkSession, schema: StructType) -> DataFrame:
    return session.range(_ROWS).select(*(_value(field.dataType).alias(field.name) for field in schema.fields))


def _value(kind: DataType) -> Column:
    """Of a number: something of that kind, or nothing where that would be an art."""
    number = f.col("id")
    if isinstance(kind, TimestampType):
        return f.timestamp_seconds(number)
    if isinstance(kind, StringType):
        return f.sha2(number.cast("string"), 256)
    if isinstance(kind, NumericType):
        return (number % 100 + 1).cast(kind)
    return (number % 2 == 0 if isinstance(kind, BooleanType) else f.lit(None)).cast(kind)
