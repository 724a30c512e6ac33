"""Keeps the records of the highest value in each window of time (`shed` of a feed).

The decision is made file by file, in the order of the files, and rows that a window already has count. A file
adds its best records as long as there is room. So of all files of a job together, the first `most` records
stay, less the rows already there: by file, then by value, then by the columns. That takes one pass, and the
same rows stay however files are grouped into loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StructType, VariantType
from pyspark.sql.window import Window

from freshline.base.errors import InputError
from freshline.definitions.sections.feeds import Feed
from freshline.spark.loading.nondeterminism import unsteady
from freshline.spark.session.quoting import quoted
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.window_counts import files_of_windows, window_counts

# Beyond these numbers of windows or rows, Spark counts the rows already there.
_WINDOWS_COUNTED: Final = 10_000
_ROWS_COUNTED: Final = 2_000_000
_SCHEME: Final = "^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?"


def check_value(records: DataFrame, feed: Feed) -> None:
    """Rejects a feed's value that is not a number to Spark or differs each time."""
    if feed.shed is None:
        return
    values = records.select(f.expr(feed.shed.value).alias("value"))
    kind = values.schema.fields[0].dataType
    if not isinstance(kind, NumericType):
        what = f"feed {feed.name}: the value that it sheds by is {kind.simpleString()}, not a number"
        raise InputError(what, "Write an expression that gives a number", feed.place)
    changing = unsteady(values)
    if changing:
        what = f"feed {feed.name}: `{changing[0]}` gives something else each time it is asked"
        raise InputError(what, "Use only what the records say, such as their timestamps", feed.place)


def kept_records(
    records: DataFrame,
    feed: Feed,
    paths: Sequence[str] = (),
    there: Mapping[int, int] | DataFrame | None = None,
) -> DataFrame:
    """The records that stay, for files in the order of their paths; one path may also be a folder.

    `there` is the number of rows that each window already has, or a data frame of windows and rows.
    """
    shed = feed.shed
    assert shed is not None
    assert feed.landing.timestamp is not None
    own = records.columns
    window, file, value, rank, rows = (
        _free(name, own) for name in ("window", "file", "value", "rank", "rows")
    )
    instant = f.unix_micros(f.col(quoted(feed.landing.timestamp)))
    marked = records.select(
        "*",
        (instant - f.pmod(instant, f.lit(shed.per_us))).alias(window),
        _place(records.sparkSession, paths).alias(file),
        f.expr(shed.value).alias(value),
    )
    order = [f.col(file), f.col(value).desc_nulls_last(), *map(_comparable, records.schema.fields)]
    # The simple condition lets Spark drop records before it sorts them.
    ranked = marked.withColumn(rank, f.row_number().over(Window.partitionBy(window).orderBy(*order)))
    ranked = ranked.where(f.col(rank) <= shed.most)
    if isinstance(there, DataFrame):
        ranked = ranked.join(there.toDF(window, rows), window, "left")
        ranked = ranked.where(f.col(rank) <= shed.most - f.coalesce(rows, f.lit(0)))
    elif there:
        known = f.create_map(*(f.lit(each).cast("long") for each in chain(*there.items())))
        taken = f.coalesce(f.try_element_at(known, f.col(window)), f.lit(0))
        ranked = ranked.where(f.col(rank) <= shed.most - taken)
    return ranked.select(*map(quoted, own))


def rows_there(
    table: ReadTable,
    feed: Feed,
    oldest_us: int,
    newest_us: int,
    read: Callable[[Sequence[LiveFile]], DataFrame],
) -> Mapping[int, int] | DataFrame:
    """The number of rows that a table has in the windows of its next files; `read` reads files with Spark."""
    shed = feed.shed
    assert shed is not None
    files = files_of_windows(table, oldest_us, newest_us, shed.per_us)
    if not files:
        return {}
    windows = (newest_us - oldest_us) // shed.per_us
    if windows <= _WINDOWS_COUNTED and sum(file.rows for file in files) <= _ROWS_COUNTED:
        return window_counts(table, files, oldest_us, newest_us, shed.per_us)
    instant = f.unix_micros(f.col(quoted(table.timestamp)))
    starts = read(files).select((instant - f.pmod(instant, f.lit(shed.per_us))).alias("window"))
    return starts.groupBy("window").count()


def _place(session: SparkSession, paths: Sequence[str]) -> Column:
    """The number of a record's file among these."""
    if len(paths) < 2:
        return f.lit(0)
    jvm: Any = session._jvm
    # In Spark's form: some characters of a name are escaped in a URI.
    named = (jvm.org.apache.hadoop.fs.Path(path).toUri().getRawPath() for path in paths)
    numbers = chain(*((f.lit(name), f.lit(number)) for number, name in enumerate(named)))
    name = f.regexp_replace(f.input_file_name(), _SCHEME, "")
    return f.coalesce(f.try_element_at(f.create_map(*numbers), name), _unknown(name))


def _unknown(name: Column) -> Column:
    return f.raise_error(f.concat(f.lit("Spark read an unexpected file "), name)).cast("int")


def _comparable(field: Any) -> Column:
    """The order of rows with the same value; types without an order are compared as text."""
    column = f.col(quoted(field.name))
    return column if _has_order(field.dataType) else f.to_json(column)


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_has_order(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_order(kind.elementType)
    return not isinstance(kind, MapType | VariantType)


def _free(name: str, taken: Sequence[str]) -> str:
    lower = {each.lower() for each in taken}
    while name in lower:
        name = f"_{name}"
    return name
