"""Data files and tables as Spark data frames."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    StructType,
)
from sqlglot import exp

from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.spark.loading.invalid_text import checked_columns
from freshline.spark.loading.projection import plain_projection
from freshline.spark.session.quoting import quoted
from freshline.sql.clock import sql_at
from freshline.sql.columns import LATE_COLUMN, RESERVED_COLUMNS
from freshline.sql.query import parse_query
from freshline.storage.delta.extent import Extent

NONE_LATE = "false"
# An observation of a finished job arrives at once or never.
_TOLD_S = 60.0
_LOOK_EVERY_S = 0.005
# Spark takes these characters of a path as a pattern, unless a backslash precedes them.
_PATTERN = re.compile(r"[\\{}\[\]*?]")
# Spark's internal option for a path that is not a pattern.
_NO_PATTERNS = ("__globPaths__", "false")


def read_files(
    session: SparkSession, feed: Feed, paths: Sequence[str], malformed: str | None = None
) -> DataFrame:
    """A feed's data files with the declared schema. A record that does not fit is an error, not a null.

    With `malformed`, a column of that name has the records of CSV and JSON that do not fit, as texts. A key
    that a JSON record lacks is a null. In a Parquet file a whole column would be: a file that lacks a
    declared column is rejected as soon as it is found.
    """
    landing = feed.landing
    assert landing.schema is not None
    assert landing.format is not None
    schema = landing.schema if malformed is None else f"{landing.schema}, {quoted(malformed)} string"
    reader = session.read.schema(schema)
    if landing.format == "csv":
        # A header must have the schema's names.
        reader = reader.option("header", landing.header).option("enforceSchema", not landing.header)
        # A quote within quotes is doubled, as is common; Spark's default differs.
        reader = reader.option("escape", '"').option("encoding", landing.encoding)
        reader = reader.option("sep", landing.delimiter)
    if landing.format != "parquet":
        reader = reader.option("mode", "FAILFAST" if malformed is None else "PERMISSIVE")
    if malformed is not None:
        reader = reader.option("columnNameOfCorruptRecord", malformed)
    return load_files(reader.format(landing.format), paths)


def load_files(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """The rows of files by their exact names, at least one: for `a[1].csv` Spark would read `a1.csv`.

    Characters of patterns are escaped. Hadoop then looks a path up by its parts, and fails on one with a
    colon. Such a file is read alone, without patterns: Spark would read each of several files repeatedly.
    """
    alone = [path for path in paths if ":" in path and _PATTERN.search(path)]
    together = sorted(set(paths).difference(alone)) if alone else paths
    frames = [reader.load([_PATTERN.sub(r"\\\g<0>", path) for path in together])] if together else []
    reader = reader.option(*_NO_PATTERNS)
    frames += [reader.load([path]) for path in alone]
    while len(frames) > 1:  # in pairs: Spark recurses into unions
        pairs = zip_longest(frames[::2], frames[1::2])
        frames = [one if other is None else one.union(other) for one, other in pairs]
    return frames[0]


def read_parquet(
    session: SparkSession, paths: Sequence[str], schema: StructType, options: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows of a table's files; without files, no rows with the same columns."""
    if not paths:
        return no_rows(session, schema)
    return load_files(session.read.schema(schema).options(**(options or {})).format("parquet"), paths)


def no_rows(session: SparkSession, schema: StructType | str) -> DataFrame:
    """A frame with these columns and no rows. PySpark's `createDataFrame` takes several times as long."""
    columns = DataType.fromDDL(schema) if isinstance(schema, str) else schema
    java: Any = session._jsparkSession
    assert session._jvm is not None
    rows = java.createDataFrame(session._jvm.java.util.ArrayList(), java.parseDataType(columns.json()))
    return DataFrame(rows, session)


def base_rows(
    session: SparkSession, table: StoredDefinition, feed: Feed, files: DataFrame, late: str | None = None
) -> DataFrame:
    """A base table's rows: its feed's rows, or the result of its `select` over them.

    `late` is an expression for records that came late; it becomes a column. Texts of Parquet files are
    checked too.
    """
    assert feed.landing.schema is not None
    marked = () if late is None else (f"{late} AS {LATE_COLUMN}",)
    checked = checked_columns(feed.landing.schema) if feed.landing.format == "parquet" else None
    if table.select is None:
        return files.selectExpr(*(checked or "*"), *marked)
    if checked is not None:
        files = files.selectExpr(*checked)
    plain = plain_projection(table.select)
    if plain is not None and late in (None, NONE_LATE):
        return plain.of(files, *marked)  # in one step: a constant `late` names no column
    if plain is None:
        files.createOrReplaceTempView(feed.name)
    rows = session.sql(table.select) if plain is None else plain.of(files)
    return rows.selectExpr("*", *marked)


def is_one_pass(table: StoredDefinition) -> bool:
    """Whether a base table's rows come from the records in one pass, without subqueries."""
    return table.select is None or plain_projection(table.select) is not None


def keeps_records(session: SparkSession, table: StoredDefinition, feed: Feed) -> bool:
    """Whether a base table has one row for each of its feed's records.

    That is so if Spark's plan only computes columns between the records and the rows.
    """
    assert feed.landing.schema is not None
    if table.select is None:
        return True
    rows = base_rows(session, table, feed, no_rows(session, feed.landing.schema))
    plan = rows._jdf.queryExecution().analyzed()
    while plan.children().size() == 1 and plan.nodeName() in ("Project", "SubqueryAlias", "View"):
        plan = plan.children().head()
    return bool(plan.children().isEmpty())


class ObservedRecords:
    """The number and times of the records that Spark reads for a `select`, observed without another job."""

    def __init__(self, records: DataFrame, timestamp: str) -> None:
        self._observation = Observation()
        self.records = records.observe(
            self._observation,
            f.count(f.lit(1)).alias("records"),
            f.unix_micros(f.min(quoted(timestamp))).alias("oldest"),
            f.unix_micros(f.max(quoted(timestamp))).alias("newest"),
        )

    def extent(self) -> Extent:
        """The extent of the records, once Spark has read them.

        It comes by an internal message that Spark drops under load; hence the timeout.
        """
        told, give_up_at = self._observation._jo, time.monotonic() + _TOLD_S
        while told is not None and not told.future().isCompleted():
            if time.monotonic() > give_up_at:
                raise TimeoutError("Spark has not reported how many records it read")
            time.sleep(_LOOK_EVERY_S)
        seen = self._observation.get
        return Extent(seen["records"], seen["oldest"], seen["newest"])


def late_expression(timestamp: str, freshness: int, oldest: int | None) -> str:
    """The expression for late records: those at or below the table's freshness.

    If none is that old, it is a constant: Spark writes the freshness into the code that it generates, and
    would compile that for every update.
    """
    if oldest is not None and oldest > freshness:
        return NONE_LATE
    return f"{quoted(timestamp)} <= timestamp_micros({freshness})"


def keeps_timestamp(table: StoredDefinition, feed: Feed) -> bool:
    """Whether a base table's timestamps are its feed's, unchanged by its `select`."""
    if table.select is None:
        return True
    for projection in parse_query(table.select).selects:
        if projection.is_star:
            return table.timestamp == feed.landing.timestamp
        if projection.alias_or_name == table.timestamp:
            inner = projection.unalias()
            return isinstance(inner, exp.Column) and inner.name == feed.landing.timestamp
    return False


def derived_rows(
    session: SparkSession,
    table: StoredDefinition,
    sources: Mapping[str, DataFrame],
    loaded_from: int | None,
    loaded_to: int,
) -> DataFrame:
    """The rows of a derived table with timestamps in (F, NF]; all up to NF of one that is computed whole."""
    assert table.sql is not None
    for name, frame in sources.items():
        frame.createOrReplaceTempView(name)
    if table.is_whole:
        return up_to(session.sql(sql_at(table.sql, loaded_to)), table.timestamp, loaded_to)
    assert table.timestamp is not None
    return between(session.sql(table.sql), table.timestamp, loaded_from, loaded_to)


def source_rows(rows: DataFrame, schema: StructType, timestamp: str, after: int | None, to: int) -> DataFrame:
    """The rows of a range that are not late, as derived tables read them."""
    return _own_columns(between(rows, timestamp, after, to), schema)


def whole_source_rows(rows: DataFrame, schema: StructType, timestamp: str | None, to: int) -> DataFrame:
    """The rows up to an instant that are not late, as tables that are computed whole read them."""
    return _own_columns(up_to(rows, timestamp, to), schema)


def _own_columns(frame: DataFrame, schema: StructType) -> DataFrame:
    """The rows that are not late, without the columns that Freshline adds."""
    if LATE_COLUMN in schema.names:
        frame = frame.where(f"NOT {LATE_COLUMN}")
    own = [column for column in RESERVED_COLUMNS if column in schema.names]
    return frame.drop(*own) if own else frame


def between(frame: DataFrame, timestamp: str, after: int | None, to: int) -> DataFrame:
    """The rows with a timestamp in (after, to]; None: from the beginning."""
    column = f.col(quoted(timestamp))
    frame = frame.where(column <= instant(to))
    return frame if after is None else frame.where(column > instant(after))


def up_to(frame: DataFrame, timestamp: str | None, to: int) -> DataFrame:
    """The rows with a timestamp up to an instant; a row without a time is before every instant."""
    if timestamp is None:
        return frame
    column = f.col(quoted(timestamp))
    return frame.where(column.isNull() | (column <= instant(to)))


def instant(microseconds: int) -> Column:
    return f.timestamp_micros(f.lit(microseconds).cast("long"))
