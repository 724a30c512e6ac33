"""One iteration of a continuous query on Spark: its window read in parts of some slices each.

A part is a Spark job of its own, so that an iteration can be put aside, or end, between two of them. All
parts read the tables' files of the iteration's beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot.errors import UnsupportedError

from freshline.definitions.columns import LATE_COLUMN, SLICE_COLUMN
from freshline.definitions.duration import SECOND
from freshline.definitions.errors import InputError
from freshline.definitions.queries import Query
from freshline.definitions.query_sql import QuerySql, read_query
from freshline.definitions.slices import SLICES
from freshline.definitions.sql.from_tables import Readable, columns_of
from freshline.definitions.warehouse import Warehouse
from freshline.spark.frames import read_parquet
from freshline.spark.merging import Answer, merge
from freshline.spark.names import quoted
from freshline.spark.part_rows import ALL, SETTINGS, Slices, rows_of, skipping_none, skipping_other
from freshline.spark.partials import Partials, as_written, partials_of, view
from freshline.spark.slices import slice_together
from freshline.storage.reading import ReadTable
from freshline.storage.slice_counts import Counts, SliceCounts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an iteration came to so far."""

    answer: Answer
    window: tuple[int, int]  # (from, to], in microseconds
    keep: Fraction  # the share of its slices that was read
    rows_seen: int  # of all windows, those of tables that are read whole included

    def record(self, query: str, released_us: int, deadline_us: int, finished_us: int) -> dict[str, Any]:
        """As `freshline results` has it; instants in seconds since the epoch."""
        return {
            "query": query,
            "window": [instant / SECOND for instant in self.window],
            "released": released_us / SECOND,
            "deadline": deadline_us / SECOND,
            "finished": finished_us / SECOND,
            "met": finished_us <= deadline_us,
            "keep": float(self.keep),
            "rows_seen": self.rows_seen,
            "rows": list(self.answer.rows),
            "estimates": [estimate._asdict() for estimate in self.answer.estimates],
        }


def session_for_queries(session: SparkSession) -> SparkSession:
    """A session of its own for iterations, in which parts skip what they do not read."""
    own = session.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own


class PreparedQuery:
    """A query that Spark has looked at. Its iterations may be of several sessions, one after the other."""

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
        self.schemas = [schemas[side.table] for side in query.sides]
        sql = read_query(query.sql, _finder(warehouse, schemas))
        self._named = {column.name.lower() for column in columns_of(sql.select)}
        visible = {
            side.table: StructType([self.schemas[place][name] for name in self.visible(place)])
            for place, side in enumerate(query.sides)
        }
        self.schema = _analysed(session, query, sql, visible)
        self.sliced = _sliced_together(query, sql, self.schemas)
        self.partials: Partials = partials_of(
            sql, self.sliced, {field.name: field.dataType for field in self.schema.fields}
        )
        self.counts = [SliceCounts(table) for table in self.tables]

    def begin(self, session: SparkSession, to_us: int, first: int | None = None) -> Iteration:
        """An iteration over the window that ends there, its slices read from `first` on, or from any."""
        return Iteration(self, session, to_us, random.randrange(SLICES) if first is None else first)

    def visible(self, place: int) -> list[str]:
        """The columns of a table that the SQL can name; `*` has no other."""
        own = {SLICE_COLUMN, *(() if LATE_COLUMN in self._named else (LATE_COLUMN,))}
        return [name for name in self.schemas[place].names if name not in own]


class Iteration:
    """The slices of a window, read from one of them on around the ring."""

    def __init__(self, prepared: PreparedQuery, session: SparkSession, to_us: int, first: int) -> None:
        self._prepared = prepared
        self._session = session
        self.window = (to_us - prepared.query.window_us, to_us)
        self._first = first
        self.slices = 0  # that were read
        self._parts: list[pa.Table] = []
        self._files = [table.files_with(*self.window) for table in prepared.tables]
        self._frames: list[DataFrame] = []
        self._counts: list[Counts] | None = None

    @property
    def slices_left(self) -> int:
        return SLICES - self.slices

    def read(self, slices: int) -> None:
        """A part: the next so many slices. Other iterations of the session may have had theirs before."""
        slices = min(slices, self.slices_left)
        if slices < 1:
            return
        prepared = self._prepared
        if not self._frames:
            self._frames = [self._table(place) for place in range(len(prepared.tables))]
        part = Slices((self._first + self.slices) % SLICES, slices)
        for place, frame in enumerate(self._frames):
            columns = prepared.visible(place)
            if place == min(prepared.sliced) and prepared.partials.outputs:
                columns.append(SLICE_COLUMN)
            rows = frame.where(self._condition(place, part)).selectExpr(*map(quoted, columns))
            rows.createOrReplaceTempView(view(place))
        with skipping_other(self._session, part):
            self._parts.append(self._session.sql(prepared.partials.sql).toArrow())
        self.slices += slices

    def outcome(self) -> Outcome:
        """The answer from what was read so far."""
        answer = merge(self._prepared.partials, self._prepared.schema, self._parts, self.slices)
        return Outcome(answer, self.window, Fraction(self.slices, SLICES), self._rows_seen())

    def rows(self) -> int:
        """How many the windows hold, of all tables."""
        return sum(int(np.sum(counts)) for counts in self._counted())

    def rows_in_slices(self, last: int = SLICES) -> int:
        """Of the tables that are read in slices, the rows of the last so many slices of the ring, up to here.

        By default of all of them, read or not.
        """
        ring = [(self._first + self.slices - 1 - number) % SLICES for number in range(last)]
        counted = self._counted()
        return sum(int(counted[place][ring].sum()) for place in self._prepared.sliced)

    def _table(self, place: int) -> DataFrame:
        """The files that have rows of the window."""
        prepared = self._prepared
        paths = [str(prepared.tables[place].path / file.path) for file in self._files[place]]
        options = {} if place in prepared.sliced else skipping_none(self._session)
        return read_parquet(self._session, paths, prepared.schemas[place], options)

    def _condition(self, place: int, part: Slices) -> str:
        prepared = self._prepared
        slices = None
        if SLICE_COLUMN in prepared.schemas[place].names:
            slices = part if place in prepared.sliced else ALL
        return rows_of(self.window, prepared.tables[place].timestamp, slices)

    def _counted(self) -> list[Counts]:
        """Rows in the windows, by slice."""
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
        read = [(self._first + number) % SLICES for number in range(self.slices)]
        return sum(
            int(counts[read].sum() if place in self._prepared.sliced else counts.sum())
            for place, counts in enumerate(self._counted())
        )


def _finder(warehouse: Warehouse, schemas: Mapping[str, StructType]) -> Callable[[str], Readable]:
    by_folded = {name.lower(): table for name, table in warehouse.tables.items()}

    def find(name: str) -> Readable:
        table = by_folded[name.lower()]
        own = (LATE_COLUMN, SLICE_COLUMN)
        columns = tuple(each.lower() for each in schemas[table.name].names if each not in own)
        return Readable(table.name, columns, table.timestamp, table.slices)

    return find


def _sliced_together(query: Query, sql: QuerySql, schemas: Sequence[StructType]) -> frozenset[int]:
    """The places of the FROM that are read in slices: of keys that Spark compares otherwise, only one."""
    places = [place for place, side in enumerate(query.sides) if side.in_slices]
    kinds = {}
    for place in places:
        slices = sql.tables.all[place].table.slices
        if slices is not None and slices.by is not None:
            folded = slices.by.lower()
            kinds[place] = next(f.dataType for f in schemas[place].fields if f.name.lower() == folded)
    first = places[0]
    return frozenset(
        place for place in places if place == first or slice_together(kinds[first], kinds[place])
    )


def _analysed(
    session: SparkSession, query: Query, sql: QuerySql, schemas: Mapping[str, StructType]
) -> StructType:
    """The answer's columns. What is rewritten here must be to Spark what the user wrote."""
    for name, schema in schemas.items():
        session.createDataFrame([], schema).createOrReplaceTempView(name)
    try:
        answer = session.sql(query.sql)
        again = session.sql(as_written(sql.select))
        is_same = _plan(answer).sameResult(_plan(again)) and answer.schema == again.schema
    except PySparkException as error:
        sentence = str(error).splitlines()[0].rstrip(".")
        what = f"Spark refuses query {query.name}: {sentence}"
        raise InputError(what, "Mend its SQL", query.place) from error
    except UnsupportedError as error:
        raise _not_rewritten(query) from error
    if not is_same:
        raise _not_rewritten(query)
    return answer.schema


def _plan(frame: DataFrame) -> Any:
    """As Spark simplifies it: `IS NOT NULL` and `NOT ... IS NULL` are the same there."""
    return frame._jdf.queryExecution().optimizedPlan()


def _not_rewritten(query: Query) -> InputError:
    what = f"query {query.name} has something in its SQL that cannot be rewritten for parts of the rows"
    return InputError(what, "Write it in another way, or make it a table and read that", query.place)
