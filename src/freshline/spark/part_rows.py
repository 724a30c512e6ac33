"""Which rows a part reads, said so that Spark has the code for it already.

Window and slices are others in every part. As plain numbers Spark would write them into the code that it
generates, compile that for every part, and run it cold. Arrays it hands over beside the code: so the window's
bounds stand in arrays, by slice. What can be skipped of the files is said to Parquet's reader itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from pyspark.sql import SparkSession

from freshline.definitions.columns import SLICE_COLUMN
from freshline.definitions.slices import SLICES
from freshline.spark.names import quoted

# Where Parquet's reader looks for what it may skip.
_SKIPPING: Final = "parquet.private.read.filter.predicate"
SETTINGS: Final = {
    # Otherwise Spark puts there what it makes of the conditions that it knows.
    "spark.sql.parquet.filterPushdown": "false",
    # A part's slices are side by side in a file: cut in a few large pieces, one task would have all of them.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.openCostInBytes": "1m",
}


@dataclass(frozen=True, slots=True)
class Slices:
    """So many slices from the first on, around the ring."""

    first: int
    count: int

    @property
    def is_all(self) -> bool:
        return self.count == SLICES

    def has(self, number: int) -> bool:
        """Rows of another writer may have none, and count as the number after the last: only all have it."""
        return self.is_all or (number < SLICES and (number - self.first) % SLICES < self.count)


ALL: Final = Slices(0, SLICES)


def rows_of(window: tuple[int, int], timestamp: str, slices: Slices | None) -> str:
    """The condition for a window, in microseconds, and slices; None for a table that has no such column."""
    after, to = (f"timestamp_micros({instant})" for instant in window)
    column = quoted(timestamp)
    if slices is None:
        # Always 0, but Spark does not know.
        number = f"unix_micros({column}) & 0"
        slices = ALL
    else:
        number = f"coalesce({SLICE_COLUMN}, {SLICES})"
    # Of slices that are not wanted the window is empty.
    runs = [(wanted, len(list(run))) for wanted, run in groupby(range(SLICES + 1), slices.has)]
    ends = ", ".join(f"array_repeat({to if wanted else after}, {count})" for wanted, count in runs)
    return (
        f"{column} > get(array_repeat({after}, {SLICES + 1}), {number})"
        f" AND {column} <= get(concat({ends}), {number})"
    )


@contextmanager
def skipping_other(session: SparkSession, slices: Slices) -> Iterator[None]:
    """Files that are read meanwhile are read without most of the rows of other slices."""
    if slices.is_all:
        yield
        return
    session.conf.set(_SKIPPING, _predicate(session, slices))
    try:
        yield
    finally:
        session.conf.unset(_SKIPPING)


def skipping_none(session: SparkSession) -> dict[str, str]:
    """Options of a table of which all rows are read, whatever is skipped of others."""
    api, column = _parquet(session)
    return {_SKIPPING: _text(session, api.notEq(column, -1))}


def _predicate(session: SparkSession, slices: Slices) -> str:
    api, column = _parquet(session)
    end = slices.first + slices.count - 1
    at_least, at_most = api.gtEq(column, slices.first), api.ltEq(column, end % SLICES)
    return _text(session, getattr(api, "and" if end < SLICES else "or")(at_least, at_most))


def _parquet(session: SparkSession) -> tuple[Any, Any]:
    assert session._jvm is not None
    api = session._jvm.org.apache.parquet.filter2.predicate.FilterApi
    return api, api.intColumn(SLICE_COLUMN)


def _text(session: SparkSession, predicate: Any) -> str:
    java: Any = session._jvm
    configuration = java.org.apache.hadoop.conf.Configuration(False)
    java.org.apache.parquet.hadoop.ParquetInputFormat.setFilterPredicate(configuration, predicate)
    return str(configuration.get(_SKIPPING))
