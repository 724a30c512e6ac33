"""How many rows of a table are in a range of time."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.storage.delta.read_table import ReadTable


def rows_between(table: ReadTable, after_us: int | None, to_us: int) -> int:
    """Rows with after < timestamp <= to; None: from the beginning."""
    after_us = -1 if after_us is None else after_us
    found = 0
    for file in table.files_with(after_us, to_us):
        known = file.oldest is not None and file.newest is not None
        if known and after_us < (file.oldest or 0) and (file.newest or 0) <= to_us:
            found += file.rows
        else:
            found += _counted(table.path / file.path, table.timestamp, after_us, to_us)
    return found


def _counted(path: Path, timestamp: str, after_us: int, to_us: int) -> int:
    instants = in_microseconds(pq.read_table(path, columns=[timestamp], partitioning=None)[timestamp])
    inside = pc.and_(pc.greater(instants, after_us), pc.less_equal(instants, to_us))
    return int(pc.sum(inside).as_py() or 0)
