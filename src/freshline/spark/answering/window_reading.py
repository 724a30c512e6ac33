"""One iteration of a continuous query on Spark: it reads its window in parts of some slices each.

A part is a Spark job of its own, so an iteration can pause or end between two parts. All parts read the
tables' files as of the iteration's beginning.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from sqlglot.errors import UnsupportedError

from freshline.base.duration import SECOND
from freshline.base.errors import InputError, about
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse
from freshline.spark.answering.merging import MergedAnswer, merge
from freshline.spark.answering.part_rows import SETTINGS
from freshline.spark.answering.partials import as_written, with_inputs
from freshline.spark.answering.slice_reader import SliceReader
from freshline.spark.answering.sliced_query import SlicedQuery, is_same, named_columns, readable, show_empty
from freshline.spark.errors import first_line
from freshline.sql.query import parse_query
from freshline.sql.query_sql import QuerySql, read_query
from freshline.sql.slices import NO_SLICE, SLICES
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.slice_counts import Counts, SliceCounts


@dataclass(frozen=True, slots=True)
class ReadingOutcome:
    """The answer of an iteration so far."""

    answer: MergedAnswer
    window: tuple[int, int]  # (from, to], in microseconds
    keep: Fraction  # the share of its slices that were read
    rows_seen: int  # of all windows, including tables that are read whole

    def record(self, query: str, released_us: int, deadline_us: int, finished_us: int) -> dict[str, Any]:
        """The record of `freshline results`; instants in seconds since the epoch."""
        return {
            "query": query,
            "window": [instant / SECOND for instant in self.window],
            "released": released_us / SECOND,
            "deadline": deadline_us / SECOND,
            "finished": finished_us / SECOND,
            "met": finished_us <= deadline_us,
            "state": "ANSWERED" if self.keep else "NOTHING_READ",
            "keep": float(self.keep),
            "rows_seen": self.rows_seen,
            "rows": list(self.answer.rows),
            "estimates": [estimate._asdict() for estimate in self.answer.estimates],
        }


def session_for_queries(session: SparkSession) -> SparkSession:
    """A new session for iterations, with the settings that let parts skip rows of files."""
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own


class PreparedQuery:
    """A query that Spark has analysed. Its iterations may use several sessions, one after the other."""

    def __init__(
        self,
        session: SparkSession,
        warehouse: Warehouse,
        query: Query,
        tables: Mapping[str, ReadTable],
        schemas: Mapping[str, StructType],
    ) -> None:
        self.query = query
        self.tables = [tables[side.table] for side in query.sides]
        try:
            self._prepare(session, warehouse, schemas)
        except InputError as error:
            if error.place is not None:
                raise
            what = about(("queries", query.name), error.what)
            raise InputError(what, error.remedy, query.place) from error
        self.counts = [SliceCounts(table) for table in self.tables]

    def _prepare(
        self, session: SparkSession, warehouse: Warehouse, schemas: Mapping[str, StructType]
    ) -> None:
        query = self.query
        known = {name.lower(): each for name, each in readable(warehouse, schemas).items()}
        sql = read_query(query.sql, lambda name: known[name.lower()])
        self.schema = _analysed(session, query, sql, schemas)
        sides = [place for place, side in enumerate(query.sides) if side.in_slices]
        of_tables = [schemas[side.table] for side in query.sides]
        whole = with_inputs(sql)
        inputs = session.sql(as_written(whole.select)).schema.fields[len(self.schema.fields) :]
        self.rewritten = SlicedQuery(whole, sides, of_tables, StructType([*self.schema.fields, *inputs]))

    @property
    def sliced(self) -> frozenset[int]:
        """The places of the FROM that are read in slices."""
        return self.rewritten.sliced

    def begin(self, session: SparkSession, to_us: int, first: int | None = None) -> WindowReading:
        """An iteration over the window that ends at `to_us`. It reads from slice `first`, or a random one."""
        return WindowReading(self, session, to_us, random.randrange(SLICES) if first is None else first)


class WindowReading:
    """Reads the slices of a window, from one of them on around the ring."""

    def __init__(self, prepared: PreparedQuery, session: SparkSession, to_us: int, first: int) -> None:
        self._prepared = prepared
        self.window = (to_us - prepared.query.window_us, to_us)
        self._files = [table.files_with(*self.window) for table in prepared.tables]
        paths = [
            [table.path / file.path for file in files]
            for table, files in zip(prepared.tables, self._files, strict=True)
        ]
        windows = [(table.timestamp, self.window) for table in prepared.tables]
        self._reading = SliceReader(prepared.rewritten, session, paths, first, windows)
        self._counts: list[Counts] | None = None

    @property
    def slices(self) -> int:
        """The number of slices read."""
        return self._reading.slices

    @property
    def slices_left(self) -> int:
        return self._reading.slices_left

    def read(self, slices: int) -> None:
        """Reads a part: the next `slices` slices. Other iterations of the session may read in between."""
        self._reading.read(slices)

    def outcome(self) -> ReadingOutcome:
        reading, prepared = self._reading, self._prepared
        answer = merge(prepared.rewritten.partials, prepared.rewritten.schema, reading.parts, reading.slices)
        return ReadingOutcome(answer, self.window, Fraction(reading.slices, SLICES), self._rows_seen())

    def rows(self) -> int:
        """The number of rows in the windows of all tables."""
        return sum(int(np.sum(counts)) for counts in self._counted())

    def rows_in_slices(self) -> int:
        """The number of rows in slices, read or not, of the tables that are read in slices."""
        return self._rows_of(range(SLICES))

    def rows_in_none(self) -> int:
        """The number of these tables' rows in no slice, which the first part reads."""
        return self._rows_of([NO_SLICE])

    def rows_of_part(self, slices: int) -> int:
        """The number of these tables' rows in the last part, which had `slices` slices."""
        reading = self._reading
        ring = reading.ring(reading.slices - slices, reading.slices)
        return self._rows_of([*ring, NO_SLICE] if slices == reading.slices else ring)

    def _rows_of(self, slices: Sequence[int]) -> int:
        counted = self._counted()
        return sum(int(counted[place][list(slices)].sum()) for place in self._prepared.sliced)

    def _counted(self) -> list[Counts]:
        """The number of rows in the windows, by slice."""
        if self._counts is None:
            prepared = self._prepared
            self._counts = [
                counts.rows(files, *self.window)
                for counts, files in zip(prepared.counts, self._files, strict=True)
            ]
        return self._counts

    def _rows_seen(self) -> int:
        if not self.slices:
            return 0
        read = [*self._reading.ring(0, self.slices), NO_SLICE]
        return sum(
            int(counts[read].sum() if place in self._prepared.sliced else counts.sum())
            for place, counts in enumerate(self._counted())
        )


def _analysed(
    session: SparkSession, query: Query, sql: QuerySql, schemas: Mapping[str, StructType]
) -> StructType:
    """The answer's columns. Spark must take the parsed SQL as the same query as the user's."""
    named = named_columns(sql)
    for side in query.sides:
        show_empty(session, side.table, schemas[side.table], named)
    try:
        answer = session.sql(query.sql)
        is_faithful = is_same(session, query.sql, as_written(parse_query(query.sql)))
    except PySparkException as error:
        what = f"Spark refuses query {query.name}: {first_line(error)}"
        raise InputError(what, "Mend its SQL", query.place) from error
    except UnsupportedError as error:
        raise _not_rewritten(query) from error
    if not is_faithful:
        raise _not_rewritten(query)
    return answer.schema


def _not_rewritten(query: Query) -> InputError:
    what = f"the SQL of query {query.name} cannot be rewritten for parts of the rows"
    return InputError(what, "Write it in another way, or make it a table and read that", query.place)
