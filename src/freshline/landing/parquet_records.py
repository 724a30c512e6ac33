"""The records of a Parquet file, from its footer, and from its timestamps if the footer is not enough."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from freshline.landing.records import FileRecords, UnreadableFile
from freshline.landing.timestamps import Span, instants_of, require_all, span_of, union
from freshline.sql.columns import Column

_BATCH_ROWS: Final = 1 << 16
_WIDTHS: Final = {"short": 16, "int": 32, "long": 64}
_WIDEST: Final = "decimal(20, 0)"


def parquet_records(path: Path, declared: Sequence[Column], timestamp: str | None) -> FileRecords:
    """The records of a file with these columns. Without the name of a timestamp they are only counted."""
    with pq.ParquetFile(path) as file:
        _require_columns(file, declared)
        metadata = file.metadata
        count = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
        if count != metadata.num_rows:
            raise UnreadableFile(f"it says that it has {metadata.num_rows} rows, and {count} in its groups")
        span = _span(file, timestamp) if count and timestamp is not None else None
        return FileRecords(count, *(span or (None, None)))


def parquet_tables(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yields some of a file's columns, one part of the file at a time; like Spark, ignores case in names."""
    with pq.ParquetFile(path) as file:
        spelled = {name.lower(): name for name in file.schema_arrow.names}
        chosen = [spelled[column.lower()] for column in columns]
        for batch in file.iter_batches(_BATCH_ROWS, columns=chosen, use_threads=False):
            yield pa.Table.from_batches([batch]).select(chosen).rename_columns(list(columns))


def _require_columns(file: Any, declared: Sequence[Column]) -> None:
    """Requires all declared columns: Spark would fill a missing one with nulls. It ignores case."""
    found = {name.lower() for name in file.schema_arrow.names}
    for column in declared:
        if column.name.lower() not in found:
            raise UnreadableFile(f"it has no column `{column.name}`")
    bits = {column.name.lower(): column.integer_bits for column in declared}
    narrow = too_narrow(file.schema_arrow, {name: width for name, width in bits.items() if width is not None})
    if narrow is not None:
        raise UnreadableFile(narrow)
    columns = file.metadata.schema
    instants = {column.name.lower() for column in declared if column.is_timestamp}
    for written in (columns.column(number) for number in range(file.metadata.num_columns)):
        if written.path.lower() in instants and _unit(written) == "nanoseconds":
            raise UnreadableFile(
                f"its column `{written.name}` has timestamps in nanoseconds, which Spark does not read: "
                "write microseconds (pyarrow: coerce_timestamps='us', allow_truncated_timestamps=True)"
            )


def _unit(column: Any) -> str | None:
    unit: str | None = json.loads(column.logical_type.to_json()).get("timeUnit")
    return unit


def _span(file: Any, timestamp: str) -> Span | None:
    metadata = file.metadata
    position = _position(metadata, timestamp)
    column = metadata.schema.column(position)
    unit = _unit(column)
    if unit is None and column.physical_type != "INT96":
        raise UnreadableFile(
            f"its column `{timestamp}` is of the type {column.logical_type}, not a timestamp"
        )
    spans = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(position).statistics
        if unit and statistics and statistics.has_min_max and statistics.has_null_count:
            require_all(statistics.null_count)
            oldest, newest = (_microseconds(raw, unit) for raw in (statistics.min_raw, statistics.max_raw))
            spans.append(Span(oldest, newest))
        elif group.num_rows:
            spans.append(_span_in_group(file, number, column.name))
    return union(spans)


def _position(metadata: Any, timestamp: str) -> int:
    """The position of the timestamp among the columns; Spark ignores case."""
    paths = [metadata.schema.column(number).path.lower() for number in range(metadata.num_columns)]
    if paths.count(timestamp.lower()) != 1:
        raise UnreadableFile(f"it has no column `{timestamp}`")
    return paths.index(timestamp.lower())


def _microseconds(raw: int, unit: str) -> int:
    return raw * 1_000 if unit == "milliseconds" else raw


def _span_in_group(file: Any, number: int, name: str) -> Span:
    return span_of(instants_of(file.read_row_group(number, columns=[name], use_threads=False).column(0)))


def too_narrow(written: Any, declared_bits: Mapping[str, int]) -> str | None:
    """What is wrong with the columns of a file (an Arrow schema), if integers of these widths are declared.

    `declared_bits` has names in lower case, because Spark ignores case. Spark reads UINT64 for a declared
    `long` as negative numbers, or fails, depending on the file's encoding.
    """
    for field in written:
        bits = declared_bits.get(field.name.lower())
        if bits is not None and pa.types.is_unsigned_integer(field.type) and bits <= field.type.bit_width:
            wider = next((name for name, width in _WIDTHS.items() if width > field.type.bit_width), _WIDEST)
            return (
                f"its column `{field.name}` is {str(field.type).upper()}, which does not fit the declared "
                f"type: declare {wider}, or write signed numbers"
            )
    return None
