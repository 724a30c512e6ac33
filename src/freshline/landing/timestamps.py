"""How old and how new a data file's records are, without Spark and with as little reading as will do."""

from __future__ import annotations

import csv
import errno
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from freshline.definitions.columns import parse_columns
from freshline.definitions.name_timestamp import epoch_us, instant_in_name
from freshline.definitions.warehouse import FileFormat
from freshline.landing.unsigned import too_narrow

_HEAD: Final = 64 << 10
_BLOCK: Final = 4 << 20
_PER_MICROSECOND: Final = {"nanoseconds": 1_000, "microseconds": 1}
_TIMESTAMPS: Final = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


class UnreadableFile(Exception):  # noqa: N818  (it says what the file is)
    """A data file that is corrupt, or not what its feed declares."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def is_of_the_machine(error: OSError) -> bool:
    """Whether the machine is in trouble, and not the file: another look may find it readable.

    Arrow reports damaged compression as an OSError without a number, and a place that no file has as EINVAL.
    """
    return error.errno not in (None, errno.EINVAL)


class Span(NamedTuple):
    """From when to when a file's records are, in microseconds since the Unix epoch."""

    oldest_us: int | None  # None where nobody looked
    newest_us: int


def record_span(
    path: Path,
    format: FileFormat,
    timestamp: str,
    schema: str,
    header: bool = True,
    name_timestamp: str | None = None,
) -> Span | None:
    """The timestamps of the oldest and the newest record; None if there are no records.

    A timestamp without a time zone is in UTC. With `name_timestamp` the name says it, and no record is read.
    An `OSError` says that the file could not be looked at, which is not its fault.
    """
    if path.stat().st_size == 0:
        return None
    named = None if name_timestamp is None else _span_in_name(path, name_timestamp)
    try:
        if format == "parquet":
            with pq.ParquetFile(path) as file:
                _require_columns(file, schema)
                return named or _span_in_parquet(file, timestamp)
        if named is not None:
            return named
        if format == "csv":
            batches = _csv_batches(path, timestamp, schema, header)
        else:
            batches = _json_batches(path, timestamp)
        return _union([span for batch in batches if (span := _span(batch)) is not None])
    except (pa.ArrowException, OSError, csv.Error, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and is_of_the_machine(error):
            raise
        raise UnreadableFile(_first_line(error)) from error


def _union(spans: Sequence[Span]) -> Span | None:
    if not spans:
        return None
    return Span(min(span.oldest_us or 0 for span in spans), max(span.newest_us for span in spans))


def _span_in_name(path: Path, pattern: str) -> Span:
    instant_us = instant_in_name(pattern, path.as_posix())
    if instant_us is None:
        raise UnreadableFile(f"its name does not follow the pattern {pattern}")
    return Span(None, instant_us)


def _require_columns(file: Any, schema: str) -> None:
    """Spark would fill a column that a Parquet file lacks with nulls; it ignores case, and other columns."""
    names = {name.lower() for name in file.schema_arrow.names}
    for column in parse_columns(schema):
        if column.name.lower() not in names:
            raise UnreadableFile(f"it has no column `{column.name}`")
    bits = {column.name.lower(): column.integer_bits for column in parse_columns(schema)}
    narrow = too_narrow(file.schema_arrow, {name: width for name, width in bits.items() if width is not None})
    if narrow is not None:
        raise UnreadableFile(narrow)


def _span_in_parquet(file: Any, timestamp: str) -> Span | None:
    metadata = file.metadata
    if metadata.num_rows == 0:
        return None
    position = _position(metadata, timestamp)
    column = metadata.schema.column(position)
    unit = json.loads(column.logical_type.to_json()).get("timeUnit")
    if unit is None and column.physical_type != "INT96":
        raise UnreadableFile(
            f"its column `{timestamp}` is of the type {column.logical_type}, not a timestamp"
        )
    spans = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(position).statistics
        if unit and statistics and statistics.has_min_max and statistics.has_null_count:
            _require_all(statistics.null_count)
            oldest, newest = (_microseconds(raw, unit) for raw in (statistics.min_raw, statistics.max_raw))
            spans.append(Span(oldest, newest))
        elif group.num_rows:
            spans.append(_span_in_group(file, number, column.name))
    return _union(spans)


def _position(metadata: Any, timestamp: str) -> int:
    """The timestamp's position among the columns; Spark ignores case."""
    paths = [metadata.schema.column(number).path.lower() for number in range(metadata.num_columns)]
    if paths.count(timestamp.lower()) != 1:
        raise UnreadableFile(f"it has no column `{timestamp}`")
    return paths.index(timestamp.lower())


def _microseconds(raw: int, unit: str) -> int:
    return raw * 1_000 if unit == "milliseconds" else raw // _PER_MICROSECOND[unit]


def _span_in_group(file: Any, number: int, name: str) -> Span:
    values = file.read_row_group(number, columns=[name]).column(0)
    _require_all(values.null_count)
    return _extremes(values.cast(pa.timestamp("us", values.type.tz), safe=False))


def _extremes(timestamps: Any) -> Span:
    extremes = pc.min_max(timestamps)
    return Span(extremes["min"].value, extremes["max"].value)


def _csv_batches(path: Path, timestamp: str, schema: str, header: bool) -> Iterator[Any]:
    """The timestamp column as text, batch by batch."""
    names = [column.name for column in parse_columns(schema)]
    column = next(name for name in names if name.lower() == timestamp.lower())
    head = _head(path)
    is_whole = len(head) < _HEAD
    rows = csv.reader(io.StringIO(head.decode("utf-8-sig", errors="replace"), newline=""))
    skipped = 0
    if header:
        titles = next((row for row in rows if row), [])
        skipped = rows.line_num
        # Spark reads csv by position: other titles mean other columns.
        if titles and [title.strip().lower() for title in titles] != [name.lower() for name in names]:
            raise UnreadableFile(f"its header is {','.join(titles)[:200]}, not {','.join(names)[:200]}")
    if is_whole and not any(rows):
        return
    reader = pacsv.open_csv(
        path,
        read_options=pacsv.ReadOptions(
            use_threads=False, block_size=_BLOCK, skip_rows=skipped, column_names=names
        ),
        convert_options=pacsv.ConvertOptions(include_columns=[column], column_types={column: pa.string()}),
    )
    for batch in reader:
        yield batch.column(0)


def _json_batches(path: Path, timestamp: str) -> Iterator[Any]:
    head = _head(path)
    if len(head) < _HEAD and not head.strip():
        return
    reader = pajson.open_json(
        path,
        read_options=pajson.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema([(timestamp, pa.string())]), unexpected_field_behavior="ignore"
        ),
    )
    for batch in reader:
        yield batch.column(0)


def _head(path: Path) -> bytes:
    """The beginning of a file, decompressed if its name says that it is compressed."""
    with pa.input_stream(path, compression="detect") as stream:
        head: bytes = stream.read(_HEAD)
    return head


def _span(texts: Any) -> Span | None:
    """The span of a batch of timestamps in ISO 8601; all with a zone or all without one is fastest."""
    if len(texts) == 0:
        return None
    _require_all(texts.null_count)
    for kind in _TIMESTAMPS:
        try:
            return _extremes(texts.cast(kind))
        except pa.ArrowInvalid:
            continue
    instants = [_instant_us(text) for text in texts.to_pylist()]
    return Span(min(instants), max(instants))


def _instant_us(text: str) -> int:
    _require_all(0 if text.strip() else 1)
    try:
        return epoch_us(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise UnreadableFile(f"{text[:100]!r} is not a timestamp") from None


def _require_all(missing: int) -> None:
    """A record without a timestamp would never be seen by a derived table."""
    if missing:
        raise UnreadableFile("a record has no timestamp")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
