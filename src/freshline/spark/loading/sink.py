"""Writes an update's rows: the driver writes small results, Spark's executors all others.

Spark's own Parquet sink takes a third of a small update: commit protocol, temporary folders, reading footers
back. From a result that comes back as Arrow the driver writes one file, and already knows its statistics.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import __version__ as spark_version
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from freshline.base.errors import InputError
from freshline.spark.loading.outliers import outliers_marked, outliers_marked_by_spark
from freshline.spark.session.session import REQUIRED
from freshline.sql.columns import LATE_COLUMN, SLICE_COLUMN
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.sliced_files import ARROW_OPTIONS, SPARK_OPTIONS, group_rows, in_order, is_sliced
from freshline.storage.delta.statistics import footer_of
from freshline.storage.delta.stored_table import StoredTable, Written

# The setting for the largest result that the driver takes, in Spark's notation of sizes; 0: none.
LIMIT_SETTING: Final = "spark.freshline.driverWrites"
_LIMIT: Final = "32m"
# How much larger than its sources a first result may be.
_RATIO_AT_FIRST: Final = 32.0
# How much larger than the last results the next may be. A result is never assumed to be smaller than its
# sources: a range longer than any before may come with other files.
_UPDATES_KNOWN: Final = 8
_LARGER: Final = 2.0
_RATIO_LEAST: Final = 1.0
# Smaller sources say nothing about larger ones: they are mostly headers.
_TELLING_BYTES: Final = 4_096
# After an update that only the executors could write, they write this many more.
_LEFT_TO_EXECUTORS: Final = 100
_SAMPLE_ROWS: Final = 1_000
_PARQUET: Final = "spark.sql.parquet."
_FILE: Final = "part-0.parquet"
# The same as Spark writes: readers find the same types, and the version tells the calendar of old dates.
_AS_SPARK: Final[dict[str, Any]] = {
    "compression": "snappy",
    "store_decimal_as_integer": True,
    "store_schema": False,
    # Texts that rarely repeat are not worth a large dictionary, which Parquet drops in the end.
    "dictionary_pagesize_limit": 1 << 16,
}
_METADATA: Final = {"org.apache.spark.version": spark_version}


@dataclass(frozen=True, slots=True)
class SinkResult:
    """The files and size that the driver wrote; those that executors wrote have to be looked up."""

    files: Written | None = None
    rows_late: int | None = None
    bytes: int | None = None  # in memory


@dataclass(slots=True)
class _Known:
    """The sizes of a table's last updates."""

    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_UPDATES_KNOWN))
    failed_in_driver: bool = False
    left_to_executors: int = 0

    def result_bytes(self, source_bytes: int) -> float:
        """An upper estimate of a result's size."""
        ratio = max(_RATIO_LEAST, _LARGER * max(self.ratios)) if self.ratios else _RATIO_AT_FIRST
        return source_bytes * ratio


class Sink:
    """Writes the rows of updates. Several tracks use it at once, never two for one table."""

    def __init__(
        self, schemas: Mapping[str, StructType], outliers: Mapping[str, str | None] | None = None
    ) -> None:
        """`outliers` has, by table, the column whose largest values are in no slice."""
        self._outliers = outliers or {}
        self._limit: int | None = None  # known once there is a session
        self._known = {name: _Known() for name, schema in schemas.items() if carried(schema)}

    def write(
        self, frame: DataFrame, name: str, stored: StoredTable, folder: str, source_bytes: int
    ) -> SinkResult:
        """Writes an update into its folder. If one way fails, the retry takes the other."""
        known, outliers = self._known.get(name), self._outliers.get(name)
        if known is None:
            return write_by_executors(frame, stored, folder, outliers)
        if self._is_for_driver(frame, known, source_bytes):
            known.failed_in_driver = True
            result = write_by_driver(frame, stored, folder, outliers)
            known.failed_in_driver = False
            return result
        failed_in_driver, known.failed_in_driver = known.failed_in_driver, False
        result = write_by_executors(frame, stored, folder, outliers)
        known.left_to_executors = (
            _LEFT_TO_EXECUTORS if failed_in_driver else max(0, known.left_to_executors - 1)
        )
        return result

    def try_out(
        self, frame: DataFrame, name: str, stored: StoredTable, folder: str, source_bytes: int
    ) -> SinkResult:
        """Writes as the next attempt would, without learning from it."""
        known = self._known.get(name)
        for_driver = known is not None and self._is_for_driver(frame, known, source_bytes)
        write = write_by_driver if for_driver else write_by_executors
        return write(frame, stored, folder, self._outliers.get(name))

    def learn(
        self, name: str, stored: StoredTable, result: SinkResult, source_bytes: int, added: Sequence[LiveFile]
    ) -> None:
        """Records the size in memory of a committed update's result, measured or estimated."""
        known = self._known.get(name)
        if known is None or source_bytes < _TELLING_BYTES:
            return
        # The commit stands: a failure to read it back only leaves the size unknown.
        with suppress(OSError, pa.ArrowException):
            taken = _bytes_of(stored, added) if result.bytes is None else result.bytes
            known.ratios.append(taken / source_bytes)

    def _is_for_driver(self, frame: DataFrame, known: _Known, source_bytes: int) -> bool:
        if self._limit is None:
            self._limit = driver_limit(frame.sparkSession)
        return (
            not known.failed_in_driver
            and not known.left_to_executors
            and known.result_bytes(source_bytes) <= self._limit
        )


def carried(kind: DataType) -> bool:
    """Whether Arrow has the type. A variant would come back as its two parts."""
    if isinstance(kind, StructType):
        return all(carried(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return carried(kind.elementType)
    if isinstance(kind, MapType):
        return carried(kind.keyType) and carried(kind.valueType)
    return not isinstance(kind, VariantType)


def count_late(stored: StoredTable, files: Sequence[LiveFile], after: int) -> int:
    """The number of late rows just loaded; files that begin after F have none."""
    late = 0
    for file in files:
        if file.oldest is None or file.oldest <= after:
            # The commit stands: an error here must not fail the job, which would then be retried.
            with suppress(OSError, pa.ArrowException):
                column = pq.read_table(stored.path / file.path, columns=[LATE_COLUMN])[LATE_COLUMN]
                late += pc.sum(column).as_py() or 0
    return late


def write_by_executors(
    frame: DataFrame, stored: StoredTable, folder: str, outliers: str | None = None
) -> SinkResult:
    options: dict[str, str] = {}
    if SLICE_COLUMN in frame.columns:
        frame = outliers_marked_by_spark(frame, outliers)
        frame, options = frame.sortWithinPartitions(SLICE_COLUMN), SPARK_OPTIONS
    frame.write.options(**options).parquet(str(stored.path / folder))
    return SinkResult()


def write_by_driver(
    frame: DataFrame, stored: StoredTable, folder: str, outliers: str | None = None
) -> SinkResult:
    """Writes all rows into one file; no file if there are no rows."""
    rows = frame.toArrow()
    late = 0
    if LATE_COLUMN in rows.column_names:
        late = pc.sum(rows[LATE_COLUMN]).as_py() or 0
    if not rows.num_rows:
        return SinkResult((), late, 0)
    path = stored.path / folder / _FILE
    path.parent.mkdir(parents=True)
    metadata: list[Any] = []
    options = _AS_SPARK
    if is_sliced(rows.schema):
        rows = in_order(outliers_marked(rows, outliers))
        options = {**_AS_SPARK, **ARROW_OPTIONS, "row_group_size": group_rows(rows)}
    bounded = [name for name in rows.column_names if _has_bounds(rows[name])]
    try:
        pq.write_table(
            rows.replace_schema_metadata(_METADATA),
            path,
            metadata_collector=metadata,
            write_statistics=bounded,
            **options,
        )
    except OSError as error:
        error.filename = error.filename or str(path)  # Arrow does not say which disk is full
        raise
    nulls = {name: rows[name].null_count for name in rows.column_names}
    footer = footer_of(path, path.stat().st_size, metadata[0], stored.schema, stored.timestamp, nulls)
    return SinkResult(((f"{folder}/{_FILE}", footer),), late, rows.nbytes)


def _has_bounds(column: pa.ChunkedArray) -> bool:
    """Whether Arrow's bounds are right. With NaN they are not: to Spark NaN is the largest number."""
    if pa.types.is_nested(column.type):
        return False  # no reader uses bounds of nested types, and these may have NaN
    return not pa.types.is_floating(column.type) or not pc.any(pc.is_nan(column)).as_py()


def _bytes_of(stored: StoredTable, files: Sequence[LiveFile]) -> float:
    """The size in memory of files' rows, estimated from the first rows."""
    largest = max(files, key=lambda file: file.rows, default=None)
    if largest is None:
        return 0.0
    with pq.ParquetFile(stored.path / largest.path) as file:
        sample = next(file.iter_batches(_SAMPLE_ROWS))
    return float(sum(file.rows for file in files) * sample.nbytes / sample.num_rows)


def driver_limit(session: SparkSession) -> int:
    """The largest result of the driver, in bytes; 0 if the user has set how Spark writes Parquet."""
    context = session.sparkContext
    assert context._jvm is not None
    assert context._jsc is not None
    settings: Any = context._jsc.sc().conf()  # PySpark's own would need some calls for every setting
    text = str(settings.get(LIMIT_SETTING, _LIMIT))
    try:
        limit = int(context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text))
    except (Py4JJavaError, PySparkException) as error:
        raise InputError(f"{LIMIT_SETTING}={text} is not a size", "Write one such as 32m, or 0") from error
    told = [
        key for each in settings.getAllWithPrefix(_PARQUET) if (key := _PARQUET + each._1()) not in REQUIRED
    ]
    told += context._jsc.hadoopConfiguration().getPropsWithPrefix("parquet.")
    return 0 if told else limit
