"""What a Parquet file's footer says about its rows, in Delta's words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.base.instants import utc
from freshline.base.paths import confined

# Delta's defaults: so many columns have statistics, and so much of a string is kept.
COLUMNS_MAX: Final = 32
PREFIX_LENGTH: Final = 32
_LAST_CHARACTER: Final = "\U0010ffff"


class UnreadableParquet(Exception):  # noqa: N818  (it is what was found)
    """A file that a job wrote is missing, cut short or lacks the timestamp column."""


class InvalidText(Exception):  # noqa: N818
    """A column of texts has bytes that are none, such as a query makes of binary values."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What is known of a Parquet file without reading its rows."""

    rows: int
    size: int
    oldest: int | None
    newest: int | None
    null_timestamps: int
    statistics: str  # JSON, as an `add` action has it


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Of one column over all row groups, in Parquet's physical values; None where a group does not say."""

    low: Any = None
    high: Any = None
    nulls: int | None = None


def read_footers(
    table: Path, folder: str | None, schema: pa.Schema, timestamp: str
) -> list[tuple[str, Footer]]:
    """The files with rows that a job wrote, each with its footer; delta-rs would add missing ones too."""
    if folder is None:
        return []
    place = confined(table, folder)
    if not place.is_dir():
        raise UnreadableParquet(f"{place} is missing")
    paths = sorted(path for path in place.glob("*.parquet") if path.name[0] not in "._")
    footers = [(path, read_footer(path, schema, timestamp)) for path in paths]
    return [(path.relative_to(table).as_posix(), footer) for path, footer in footers if footer.rows]


def read_footer(path: Path, schema: pa.Schema, timestamp: str) -> Footer:
    """The statistics of a file of a table with this schema and timestamp column."""
    try:
        size = path.stat().st_size
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise UnreadableParquet(f"{path} cannot be read: {error}") from error
    return footer_of(path, size, metadata, schema, timestamp)


def footer_of(
    path: Path,
    size: int,
    metadata: Any,
    schema: pa.Schema,
    timestamp: str,
    counted: Mapping[str, int] | None = None,
) -> Footer:
    """The same of a file whose metadata is at hand, as it is after writing it.

    `counted` are the nulls of columns of which the metadata may say nothing.
    """
    written = metadata.schema.to_arrow_schema()
    if timestamp not in written.names:
        raise UnreadableParquet(f"{path} has no column {timestamp!r}")
    wanted = {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    kept = {*list(wanted)[:COLUMNS_MAX], timestamp}
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    oldest = newest = None
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        if name not in kept:
            continue
        bounds = _bounds(metadata, index)
        if name == timestamp:
            bounds = _in_microseconds(path, name, bounds, written.field(name).type)
            oldest, newest = bounds.low, bounds.high
        if bounds.nulls is not None:
            nulls[name] = bounds.nulls
        elif counted is not None:
            nulls[name] = counted[name]
        try:
            low[name] = _in_json(bounds.low, wanted[name], written.field(name).type)
            high[name] = _in_json(bounds.high, wanted[name], written.field(name).type, upper=True)
        except UnicodeDecodeError as error:
            raise InvalidText(f"column {name} has bytes that are no text: {error.object!r:.100}") from error
    statistics = {
        "numRecords": metadata.num_rows,
        "minValues": {name: value for name, value in low.items() if value is not None},
        "maxValues": {name: value for name, value in high.items() if value is not None},
        "nullCount": nulls,
    }
    # Not escaped: delta-rs reads an escaped character beyond the first 65,536 as another, smaller one.
    text = json.dumps(statistics, ensure_ascii=False)
    return Footer(metadata.num_rows, size, oldest, newest, nulls[timestamp], text)


def _bounds(metadata: Any, index: int) -> _Bounds:
    low = high = None
    nulls = 0
    bounded = True
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(index)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return _Bounds()
        nulls += statistics.null_count
        if statistics.null_count == chunk.num_values:
            continue
        if not statistics.has_min_max:
            bounded = False
            continue
        low = statistics.min_raw if low is None else _either(min, low, statistics.min_raw)
        high = statistics.max_raw if high is None else _either(max, high, statistics.max_raw)
    return _Bounds(low, high, nulls) if bounded else _Bounds(nulls=nulls)


def _either(choose: Any, one: Any, other: Any) -> Any:
    """The smaller or larger one; NaN, which Spark counts as the largest, must not get lost on the way."""
    for value in (one, other):
        if isinstance(value, float) and math.isnan(value):
            return value
    return choose(one, other)


def _in_microseconds(path: Path, column: str, bounds: _Bounds, written: Any) -> _Bounds:
    """The timestamp column's bounds; read from the rows where the footer does not have them (INT96)."""
    if bounds.nulls is not None and bounds.low is not None and written.unit == "us":
        return bounds
    instants = in_microseconds(pq.read_table(path, columns=[column])[column])
    extremes = pc.min_max(instants).as_py()
    return _Bounds(extremes["min"], extremes["max"], instants.null_count)


def _in_json(value: Any, wanted: Any, written: Any, upper: bool = False) -> Any:
    """A bound as Delta writes it, None where it cannot be said exactly enough to skip files by it."""
    if value is None:
        return None
    if pa.types.is_boolean(wanted) or pa.types.is_integer(wanted):
        return value
    if pa.types.is_floating(wanted):
        return value if math.isfinite(value) else None
    if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
        return _prefix(value.decode("utf-8"), upper)
    if pa.types.is_date32(wanted):
        return _day(value)
    if pa.types.is_timestamp(wanted) and written.unit == "us":
        return in_delta_words(value, wanted.tz is not None)
    # Decimals: JSON numbers are read as floating point by some readers, and a rounded bound would be wrong.
    return None


def _prefix(text: str, upper: bool) -> str | None:
    if len(text) <= PREFIX_LENGTH:
        return text
    if not upper:
        return text[:PREFIX_LENGTH]
    # Nothing that begins with the prefix comes after it, unless it goes on with the very last character.
    return None if text[PREFIX_LENGTH] == _LAST_CHARACTER else text[:PREFIX_LENGTH] + _LAST_CHARACTER


def _day(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def in_delta_words(instant_us: int, with_zone: bool) -> str | None:
    """A timestamp of the statistics, to the microsecond; None beyond the years that it can be written in."""
    try:
        text = utc(instant_us).replace(tzinfo=None).isoformat(timespec="microseconds")
    except OverflowError:
        return None
    return text + "Z" if with_zone else text
