"""Compares what Spark reads from data files with what was found in them without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from freshline.definitions.sections.feeds import Feed
from freshline.landing.records import FileRecords
from freshline.spark.loading.frames import load_files, read_files
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import parse_columns

_CORRUPT = "_corrupt"


@dataclass(frozen=True, slots=True)
class SparkRead:
    """What Spark reads from a file."""

    records: int
    newest_us: int | None


def read_by_spark(session: SparkSession, feed: Feed, paths: Sequence[Path]) -> dict[Path, SparkRead]:
    """What Spark reads from each text file, in two jobs; files that would fail an update are left out.

    The first job finds records that fail, or have no timestamp; the second reads as an update does.
    """
    failing = {_path(row) for row in _by_file(_tolerant(session, feed, paths), feed) if row.wrong}
    left = [path for path in paths if path not in failing]
    if not left:
        return {}
    strict = read_files(session, feed, [str(path) for path in left]).withColumn(_CORRUPT, f.lit(None))
    found = {_path(row): SparkRead(row.records, row.newest) for row in _by_file(strict, feed)}
    return {path: found.get(path, SparkRead(0, None)) for path in left}


def disagreements(found: Mapping[Path, FileRecords], read: Mapping[Path, SparkRead]) -> list[str]:
    """The files with other records found than Spark reads."""
    return [
        f"{path}: found {found[path].count} up to {found[path].newest_us}, read {by_spark}"
        for path, by_spark in read.items()
        if (found[path].count, found[path].newest_us) != (by_spark.records, by_spark.newest_us)
    ]


def _tolerant(session: SparkSession, feed: Feed, paths: Sequence[Path]) -> DataFrame:
    landing = feed.landing
    assert landing.format is not None
    reader = (
        session.read.schema(f"{landing.schema}, {_CORRUPT} string")
        .option("columnNameOfCorruptRecord", _CORRUPT)
        .option("header", landing.header)
        .option("escape", '"')
        .option("encoding", landing.encoding)
        .format(landing.format)
    )
    return load_files(reader, [str(path) for path in paths])


def _by_file(records: DataFrame, feed: Feed) -> list[Row]:
    assert feed.landing.schema is not None
    assert feed.landing.timestamp is not None
    instant = f.col(quoted(feed.landing.timestamp))
    # Spark does not parse columns that a query does not need; an update needs all.
    asked = [f.count(quoted(column.name)) for column in parse_columns(feed.landing.schema)]
    return (
        records.groupBy(f.input_file_name().alias("file"))
        .agg(
            f.count(f.lit(1)).alias("records"),
            f.unix_micros(f.max(instant)).alias("newest"),
            f.count_if(f.col(_CORRUPT).isNotNull() | instant.isNull()).alias("wrong"),
            *asked,
        )
        .collect()
    )


def _path(row: Row) -> Path:
    return Path(unquote(urlparse(row.file).path))
