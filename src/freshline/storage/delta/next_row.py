"""The next row of a table after an instant, found with little reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from freshline.base.arrow_instants import in_microseconds
from freshline.sql.columns import LATE_COLUMN
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable


def next_row(table: ReadTable, after_us: int, to_us: int, near_us: int | None = None) -> int | None:
    """The earliest timestamp in (after, to] of rows that are not late; None if there is no such row.

    The result may be up to 1 ms too early. If there are rows up to `near`, any of them will do. Statistics
    answer most cases. A file is read if it may have late rows, which do not count, or begins by `after`.
    """
    near_us = after_us if near_us is None else near_us  # only the earliest will do
    has_late = LATE_COLUMN in table.schema.names
    found: int | None = None
    for file in sorted(table.files_with(after_us, to_us), key=lambda file: _first(file, after_us)):
        if found is not None and (found <= near_us or found <= _first(file, after_us)[0]):
            break
        until_us = to_us if found is None else found - 1
        if file.oldest is not None and file.oldest > after_us and not has_late:
            found = file.oldest  # another writer's statistics are rounded down to the millisecond
            continue
        for earliest in _earliest(table.path / file.path, table.timestamp, has_late, after_us, until_us):
            found = earliest if found is None else min(found, earliest)
            if found <= near_us:
                break
    return found


def _first(file: LiveFile, after_us: int) -> tuple[int, int]:
    """The sort key of a file: when its rows after `after_us` can begin, then when the file ends."""
    first = after_us + 1 if file.oldest is None else max(after_us + 1, file.oldest)
    return first, first if file.newest is None else file.newest


def _earliest(path: Path, timestamp: str, has_late: bool, after_us: int, to_us: int) -> Iterator[int]:
    """The earliest such row of each part of a file that may have one."""
    fragment = next(ds.dataset(path, format="parquet", partitioning=None).get_fragments())
    if not {timestamp, *([LATE_COLUMN] if has_late else [])} <= {*fragment.physical_schema.names}:
        return  # another writer's timestamps, read as nulls: no update takes such rows
    microseconds = pa.timestamp("us", fragment.physical_schema.field(timestamp).type.tz)
    after, to = (pa.scalar(instant, pa.int64()).cast(microseconds) for instant in (after_us, to_us))
    wanted = (ds.field(timestamp) > after) & (ds.field(timestamp) <= to)
    if has_late:
        wanted &= ~ds.field(LATE_COLUMN)
    for group in fragment.split_by_row_group(wanted):
        rows = group.to_table(columns=[timestamp], filter=wanted, use_threads=False)
        earliest = pc.min(in_microseconds(rows[timestamp]))
        if earliest.is_valid:
            yield earliest.as_py()
