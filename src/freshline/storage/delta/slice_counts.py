"""Counts the rows of a table in a range of time by slice, from columns that are cheap to read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import NO_SLICE, SLICES
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.sliced_files import is_sliced

Counts = npt.NDArray[np.int64]  # by slice; the last place, NO_SLICE, counts rows without a slice
_FILES_KNOWN: Final = 10_000


class SliceCounts:
    """The counts of one table. Its files never change, so the counts of a file are kept."""

    def __init__(self, table: ReadTable) -> None:
        self._table = table
        self._is_sliced = is_sliced(table.schema)  # if not, all rows count for the first slice
        self._known: OrderedDict[str, Counts] = OrderedDict()

    def rows(self, files: Iterable[LiveFile], after_us: int, to_us: int) -> Counts:
        """The counts of these files' rows with after < timestamp <= to."""
        found = _none()
        for file in files:
            is_inside = (
                file.oldest is not None
                and file.newest is not None
                and file.oldest > after_us
                and file.newest <= to_us
            )
            found += self._all(file) if is_inside else self._some(file, after_us, to_us)
        return found

    def _all(self, file: LiveFile) -> Counts:
        counts = self._known.pop(file.path, None)
        if counts is None:
            counts = _counted(self._read(file, [])) if self._is_sliced else _of_first(file.rows)
        self._known[file.path] = counts
        if len(self._known) > _FILES_KNOWN:
            self._known.popitem(last=False)
        return counts

    def _some(self, file: LiveFile, after_us: int, to_us: int) -> Counts:
        rows = self._read(file, [self._table.timestamp])
        instants = in_microseconds(rows[self._table.timestamp])
        rows = rows.filter(pc.and_(pc.greater(instants, after_us), pc.less_equal(instants, to_us)))
        return _counted(rows) if self._is_sliced else _of_first(rows.num_rows)

    def _read(self, file: LiveFile, columns: list[str]) -> pa.Table:
        if self._is_sliced:
            columns = [SLICE_COLUMN, *columns]
        return pq.read_table(self._table.path / file.path, columns=columns, partitioning=None)


def _counted(rows: pa.Table) -> Counts:
    slices = pc.fill_null(rows[SLICE_COLUMN], NO_SLICE).to_numpy().astype(np.int64)
    return np.bincount(slices % len(_none()), minlength=len(_none())).astype(np.int64)


def _of_first(rows: int) -> Counts:
    counts = _none()
    counts[0] = rows
    return counts


def _none() -> Counts:
    return np.zeros(SLICES + 1, np.int64)
