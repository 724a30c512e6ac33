"""Reads the slices of tables part by part, from one slice on around the ring.

A part is a Spark job of its own, so a reader can pause or end between two parts. All parts read the same
files. The first part also reads the rows in no slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshline.spark.answering.part_rows import (
    ALL,
    SliceRange,
    rows_in_window,
    rows_of,
    skipping_none,
    skipping_other,
)
from freshline.spark.answering.partials import view
from freshline.spark.answering.sliced_query import SlicedQuery
from freshline.spark.loading.frames import read_parquet
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import SLICES

Window = tuple[int, int]  # (from, to], in microseconds


class SliceReader:
    """The parts read so far. Other readers of the session may read between two parts."""

    def __init__(
        self,
        rewritten: SlicedQuery,
        session: SparkSession,
        files: Sequence[Sequence[Path]],  # by place in the FROM
        first: int,
        windows: Sequence[tuple[str, Window]] | None = None,  # by place, with the time column; None: all rows
        sql: str | None = None,  # a part's SQL if it differs from the rewritten one
    ) -> None:
        self._rewritten = rewritten
        self._sql = rewritten.partials.sql if sql is None else sql
        self._session = session
        self._files = files
        self.first = first
        self._windows = windows
        self._frames: list[DataFrame] = []
        self.slices = 0  # the number read
        self.parts: list[pa.Table] = []

    @property
    def slices_left(self) -> int:
        return SLICES - self.slices

    def ring(self, begin: int, end: int) -> list[int]:
        """The numbers of the slices from the one read after `begin` others to the one after `end`."""
        return [(self.first + number) % SLICES for number in range(begin, end)]

    def read(self, slices: int) -> None:
        """Reads a part: the next `slices` slices, or fewer if fewer are left."""
        slices = min(slices, self.slices_left)
        if slices < 1:
            return
        rewritten = self._rewritten
        if not self._frames:
            self._frames = [self._table(place) for place in range(len(self._files))]
        part = SliceRange((self.first + self.slices) % SLICES, slices, is_first=not self.slices)
        for place, frame in enumerate(self._frames):
            columns = rewritten.visible(place)
            if place == min(rewritten.sliced) and rewritten.partials.outputs:
                columns.append(SLICE_COLUMN)
            condition = self._condition(place, part)
            rows = frame if condition is None else frame.where(condition)
            rows.selectExpr(*map(quoted, columns)).createOrReplaceTempView(view(place))
        with skipping_other(self._session, part):
            found = self._session.sql(self._sql).toArrow()
        self.parts.append(found)
        self.slices += slices

    def _table(self, place: int) -> DataFrame:
        """The rows of a table's files that have rows in the window."""
        rewritten = self._rewritten
        options = {} if place in rewritten.sliced else skipping_none(self._session)
        return read_parquet(self._session, [*map(str, self._files[place])], rewritten.schemas[place], options)

    def _condition(self, place: int, part: SliceRange) -> str | None:
        rewritten = self._rewritten
        slices = None
        if SLICE_COLUMN in rewritten.schemas[place].names:
            slices = part if place in rewritten.sliced else ALL
        if self._windows is None:
            return None if slices is None or slices is ALL else rows_of(slices)
        timestamp, window = self._windows[place]
        return rows_in_window(window, timestamp, slices)
