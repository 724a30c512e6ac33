"""Finds the record and the column of a file that Spark cannot read."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from freshline.definitions.sections.feeds import Feed
from freshline.spark.loading.frames import read_files
from freshline.spark.loading.invalid_text import text_conditions
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import parse_columns

_COLUMN: Final = "_malformed_record"
_RECORD_MAX: Final = 120
_NO_TEXT: Final = "[INVALID_UTF8_STRING]"
# Java's messages about a value of a wrong type: CSV readers do not name the column.
_VALUES: Final = (re.compile(r'For input string: "(.*?)"'), re.compile(r"Text '(.*?)' could not be parsed"))


def malformed_record(session: SparkSession, feed: Feed, path: Path, said: str) -> str:
    """Names the first record that Spark cannot read, and the column; empty if Spark reads all records.

    `said` is Spark's message about the file. Records of CSV and JSON are quoted as in the file.
    """
    if feed.landing.format == "parquet":
        return _column_of_no_text(session, feed, path) if said.startswith(_NO_TEXT) else ""
    records = read_files(session, feed, [str(path)], malformed=_COLUMN)
    first = records.where(f"{quoted(_COLUMN)} IS NOT NULL").first()
    record = "" if first is None else str(first[_COLUMN]).strip()
    if not record or record in said:
        return ""
    column = _csv_column(feed, record, said) if feed.landing.format == "csv" else None
    shown = record if len(record) <= _RECORD_MAX else f"{record[:_RECORD_MAX]}..."
    return f" in {'the' if column is None else f'column {column} of the'} record {shown}"


def _column_of_no_text(session: SparkSession, feed: Feed, path: Path) -> str:
    assert feed.landing.schema is not None
    conditions = text_conditions(feed.landing.schema)
    records = read_files(session, feed, [str(path)])
    first = (
        records.where(f"NOT ({' AND '.join(conditions.values())})").selectExpr(*conditions.values()).first()
    )
    if first is None:
        return ""
    return f" in column {next(name for name, is_text in zip(conditions, first, strict=True) if not is_text)}"


def _csv_column(feed: Feed, record: str, said: str) -> str | None:
    """The column with the value that Spark's message names, if only one column has it."""
    value = next((found[1] for pattern in _VALUES if (found := pattern.search(said))), None)
    assert feed.landing.schema is not None
    names = [column.name for column in parse_columns(feed.landing.schema)]
    values = next(csv.reader([record], delimiter=feed.landing.delimiter), [])
    having = [name for name, own in zip(names, values, strict=False) if own.strip() == value]
    return having[0] if len(having) == 1 else None
