"""Conditions for the rows that a part reads, written so that Spark can reuse its generated code.

Each part has another window and other slices. Spark would write plain numbers into the code that it
generates, compile that for every part and run it cold. It passes arrays as arguments of the code, so the
window's bounds are in arrays, by slice. Parquet's reader gets a filter of its own to skip parts of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from pyspark.sql import SparkSession

from freshline.spark.session.quoting import quoted
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import NO_SLICE, SLICES

# The setting with the filter of Parquet's reader.
_SKIPPING: Final = "parquet.private.read.filter.predicate"
SETTINGS: Final = {
    # Otherwise Spark would overwrite it with a filter of its own.
    "spark.sql.parquet.filterPushdown": "false",
    # A part's slices are adjacent in a file: with a few large partitions one task would read all of them.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.openCostInBytes": "1m",
}


@dataclass(frozen=True, slots=True)
class SliceRange:
    """`count` slices from the first on, around the ring. The first range includes the rows in no slice."""

    first: int
    count: int
    is_first: bool = True  # of all parts: it has the rows in no slice

    @property
    def is_all(self) -> bool:
        return self.count == SLICES and self.is_first

    def has(self, number: int) -> bool:
        """Whether a slice is in the range; `NO_SLICE` stands for outliers and rows of another writer."""
        if number == NO_SLICE:
            return self.is_first
        return (number - self.first) % SLICES < self.count


ALL: Final = SliceRange(0, SLICES)
# Places in the arrays: rows in no slice come first.
_PLACES: Final = range(NO_SLICE, SLICES)
_PLACE: Final = f"coalesce({SLICE_COLUMN}, {NO_SLICE}) - ({NO_SLICE})"


def rows_of(slices: SliceRange) -> str:
    """The condition for rows of these slices."""
    return f"get({_by_place(slices, 'true', 'false')}, {_PLACE})"


def rows_in_window(window: tuple[int, int], timestamp: str, slices: SliceRange | None) -> str:
    """The condition for a window, in microseconds, and slices (None: the table has no slices)."""
    after, to = (f"timestamp_micros({instant})" for instant in window)
    column = quoted(timestamp)
    place = _PLACE
    if slices is None:
        # This is always 0, but Spark does not know that.
        place = f"CAST(unix_micros({column}) & 0 AS int)"
        slices = ALL
    # For other slices the window is empty.
    return (
        f"{column} > get(array_repeat({after}, {len(_PLACES)}), {place})"
        f" AND {column} <= get({_by_place(slices, to, after)}, {place})"
    )


def _by_place(slices: SliceRange, wanted: str, other: str) -> str:
    """An array with one of two values for each slice."""
    runs = [(is_wanted, len(list(run))) for is_wanted, run in groupby(_PLACES, slices.has)]
    ends = ", ".join(f"array_repeat({wanted if is_wanted else other}, {count})" for is_wanted, count in runs)
    return f"concat({ends})"


@contextmanager
def skipping_other(session: SparkSession, slices: SliceRange) -> Iterator[None]:
    """Within this context readers of files skip most of the rows of other slices."""
    if slices.is_all:
        yield
        return
    session.conf.set(_SKIPPING, _predicate(session, slices))
    try:
        yield
    finally:
        session.conf.unset(_SKIPPING)


def skipping_none(session: SparkSession) -> dict[str, str]:
    """The options of a table whose rows are all read, whatever readers skip of others."""
    api, column = _parquet(session)
    return {_SKIPPING: _text(session, api.notEq(column, NO_SLICE - 1))}


def _predicate(session: SparkSession, slices: SliceRange) -> str:
    api, column = _parquet(session)
    end = slices.first + slices.count - 1
    at_least, at_most = api.gtEq(column, slices.first), api.ltEq(column, end % SLICES)
    if end < SLICES:
        wanted = getattr(api, "and")(at_least, at_most)
    else:
        # Around the ring's end: slices from 0 on begin after the rows in no slice.
        wanted = getattr(api, "or")(at_least, getattr(api, "and")(api.gtEq(column, 0), at_most))
    if slices.is_first:
        none = getattr(api, "or")(api.eq(column, NO_SLICE), api.eq(column, None))
        wanted = getattr(api, "or")(wanted, none)
    return _text(session, wanted)


def _parquet(session: SparkSession) -> tuple[Any, Any]:
    assert session._jvm is not None
    api = session._jvm.org.apache.parquet.filter2.predicate.FilterApi
    return api, api.intColumn(SLICE_COLUMN)


def _text(session: SparkSession, predicate: Any) -> str:
    java: Any = session._jvm
    configuration = java.org.apache.hadoop.conf.Configuration(False)
    java.org.apache.parquet.hadoop.ParquetInputFormat.setFilterPredicate(configuration, predicate)
    return str(configuration.get(_SKIPPING))
