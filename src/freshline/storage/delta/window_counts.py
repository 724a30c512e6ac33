"""Counts a table's rows in ranges and windows of time, from its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.landing.timestamps import instants_of
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable


def window_of(at_us: int, per_us: int) -> int:
    """The beginning of the window of an instant."""
    return at_us - at_us % per_us


def files_of_windows(table: ReadTable, first_us: int, last_us: int, per_us: int) -> list[LiveFile]:
    """The files that may have rows in the windows from one instant to the other."""
    return table.files_with(window_of(first_us, per_us) - 1, window_of(last_us, per_us) + per_us - 1)


def window_counts(
    table: ReadTable, files: Iterable[LiveFile], first_us: int, last_us: int, per_us: int
) -> dict[int, int]:
    """The number of rows in each window, by its beginning, late rows included."""
    first, last = window_of(first_us, per_us), window_of(last_us, per_us)
    found: dict[int, int] = {}
    for each in files:
        with pq.ParquetFile(table.path / each.path) as file:
            for batch in file.iter_batches(columns=[table.timestamp], use_threads=False):
                at_us = instants_of(pa.chunked_array([batch.column(0)])).to_numpy()
                starts = at_us - at_us % per_us
                starts = starts[(starts >= first) & (starts <= last)]
                for start, count in zip(*np.unique(starts, return_counts=True), strict=True):
                    found[int(start)] = found.get(int(start), 0) + int(count)
    return found


def rows_between(table: ReadTable, after_us: int | None, to_us: int) -> int:
    """The number of rows with after < timestamp <= to; `after` None: from the beginning."""
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
