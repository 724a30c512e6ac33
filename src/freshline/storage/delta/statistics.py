"""The statistics of a Parquet file's footer in Delta's format."""

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

# Delta's defaults: the number of columns with statistics and the length of the kept prefix of a string.
COLUMNS_MAX: Final = 32
PREFIX_LENGTH: Final = 32
_LAST_CHARACTER: Final = "\U0010ffff"


class UnreadableParquet(Exception):  # noqa: N818  (it is what was found)
    """A file of a job is missing, cut short or lacks the timestamp column."""


class InvalidText(Exception):  # noqa: N818
    """A text column has bytes that are not text, such as a query makes from binary values."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The facts about a Parquet file that need no reading of rows."""

    rows: int
    size: int
    oldest: int | None
    newest: int | None
    null_timestamps: int
    statistics: str  # JSON of an `add` action


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of a column over all row groups, as Parquet's physical values; None if a group has none."""

    low: Any = None
    high: Any = None
    nulls: int | None = None


def read_footers(
    table: Path, folder: str | None, schema: pa.Schema, timestamp: str
) -> list[tuple[str, Footer]]:
    """The footers of a job's files that have rows. A missing file is an error: delta-rs would add it."""
    if folder is None:
        return []
    place = confined(table, folder)
    if not place.is_dir():
        raise UnreadableParquet(f"{place} is missing")
    paths = sorted(path for path in place.glob("*.parquet") if path.name[0] not in "._")
    footers = [(path, read_footer(path, schema, timestamp)) for path in paths]
    return [(path.relative_to(table).as_posix(), footer) for path, footer in footers if footer.rows]


def read_footer(path: Path, schema: pa.Schema, timestamp: str) -> Footer:
    """The statistics of a file of a table with this schema and timestamp column; "": it has no time."""
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
    """The footer of a file from its metadata, for a file that was just written.

    `counted` are the null counts of columns for which the metadata may have none.
    """
    written = metadata.schema.to_arrow_schema()
    if timestamp and timestamp not in written.names:
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
            raise InvalidText(f"column {name} has bytes that are not text: {error.object!r:.100}") from error
    statistics = {
        "numRecords": metadata.num_rows,
        "minValues": {name: value for name, value in low.items() if value is not None},
        "maxValues": {name: value for name, value in high.items() if value is not None},
        "nullCount": nulls,
    }
    # Not escaped: delta-rs misreads escaped characters beyond the first 65,536.
    text = json.dumps(statistics, ensure_ascii=False)
    return Footer(metadata.num_rows, size, oldest, newest, nulls.get(timestamp, 0), text)


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
    """The smaller or larger value. It keeps NaN, which Spark counts as the largest."""
    for value in (one, other):
        if isinstance(value, float) and math.isnan(value):
            return value
    return choose(one, other)


def _in_microseconds(path: Path, column: str, bounds: _Bounds, written: Any) -> _Bounds:
    """The timestamp column's bounds, from the rows if the footer has none (INT96)."""
    if bounds.nulls is not None and bounds.low is not None and written.unit == "us":
        return bounds
    instants = in_microseconds(pq.read_table(path, columns=[column])[column])
    extremes = pc.min_max(instants).as_py()
    return _Bounds(extremes["min"], extremes["max"], instants.null_count)


def _in_json(value: Any, wanted: Any, written: Any, upper: bool = False) -> Any:
    """A bound as Delta writes it; None if it is not exact enough to skip files by it."""
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
    # Decimals: some readers read JSON numbers as floating point, and a rounded bound would be wrong.
    return None


def _prefix(text: str, upper: bool) -> str | None:
    if len(text) <= PREFIX_LENGTH:
        return text
    if not upper:
        return text[:PREFIX_LENGTH]
    # No string with this prefix sorts after it, unless it continues with the very last character.
    return None if text[PREFIX_LENGTH] == _LAST_CHARACTER else text[:PREFIX_LENGTH] + _LAST_CHARACTER


def _day(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def in_delta_words(instant_us: int, with_zone: bool) -> str | None:
    """A timestamp for the statistics, to the microsecond; None for years that the format does not allow."""
    try:
        text = utc(instant_us).replace(tzinfo=None).isoformat(timespec="microseconds")
    except OverflowError:
        return None
    return text + "Z" if with_zone else text
