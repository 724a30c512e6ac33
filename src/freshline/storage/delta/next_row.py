"""The next row of a table after an instant, found with as little reading as will do."""

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
    """The earliest timestamp in (after, to] of rows that are not late, or up to 1 ms before; None of no row.

    If there is one up to `near`, any of those will do. Statistics tell most of it. A file is read where it
    may have late rows, which do not count, or begins at `after` or before.
    """
    near_us = after_us if near_us is None else near_us  # then it must be the earliest
    has_late = LATE_COLUMN in table.schema.names
    found: int | None = None
    for file in sorted(table.files_with(after_us, to_us), key=lambda file: _first(file, after_us)):
        if found is not None and (found <= near_us or found <= _first(file, after_us)[0]):
            break
        until_us = to_us if found is None else found - 1
        if file.oldest is not None and file.oldest > after_us and not has_late:
            found = file.oldest  # to the millisecond below, where another writer's statistics say it
            continue
        for earliest in _earliest(table.path / file.path, table.timestamp, has_late, after_us, until_us):
            found = earliest if found is None else min(found, earliest)
            if found <= near_us:
                break
    return found


def _first(file: LiveFile, after_us: int) -> tuple[int, int]:
    """From when on a file may have such rows; of files alike, the one first that ends first."""
    first = after_us + 1 if file.oldest is None else max(after_us + 1, file.oldest)
    return first, first if file.newest is None else file.newest


def _earliest(path: Path, timestamp: str, has_late: bool, after_us: int, to_us: int) -> Iterator[int]:
    """The earliest such row of each part of a file that may have one."""
    fragment = next(ds.dataset(path, format="parquet", partitioning=None).get_fragments())
    if not {timestamp, *([LATE_COLUMN] if has_late else [])} <= {*fragment.physical_schema.names}:
        return  # another writer's, read as nulls: no update takes such rows
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
