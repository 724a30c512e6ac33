"""One request on Spark: it reads its tables in parts of some slices each, and has an answer after each.

All parts read the same version of the tables. One thread reads; any other may take the answer so far or
cancel the current part.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType
from sqlglot import exp
from sqlglot.errors import UnsupportedError

from freshline.base.clock import clock
from freshline.base.errors import InputError
from freshline.spark.answering.merging import AnswerColumn, merged_columns
from freshline.spark.answering.partials import as_written, with_inputs
from freshline.spark.answering.result_rows import can_apply, chosen
from freshline.spark.answering.slice_reader import SliceReader
from freshline.spark.answering.sliced_query import SlicedQuery, is_same, show_empty, visible_columns
from freshline.spark.errors import first_line, sentence
from freshline.spark.loading.frames import read_parquet
from freshline.spark.session.quoting import quoted
from freshline.sql.request_sql import NOW, RequestRefused, RequestSql, SlicedRequest
from freshline.sql.slices import SLICES
from freshline.storage.delta.read_table import ReadTable

# With fewer rows neither a value nor its interval is reliable.
FEW_ROWS: Final = 30
# Limits for an answer's rows and for its groups by slice: both are in the driver's memory.
ROWS_MAX: Final = 1_000_000
CELLS_MAX: Final = 4 * ROWS_MAX
_JOB_GROUP: Final = "spark.jobGroup.id"
# Joins that compare each row with each: they may never end, and Spark cannot cancel them inside.
_EACH_WITH_EACH: Final = ("NestedLoopJoin", "CartesianProduct")

Interval = tuple[float, float] | None


class PartCancelled(Exception):  # noqa: N818  (it is what happened)
    """A part was cancelled. The parts before it still count."""


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """The answer so far. `intervals` and `few` are by row and column, like `rows`."""

    schema: StructType
    rows: tuple[tuple[Any, ...], ...]
    intervals: tuple[tuple[Interval, ...], ...]  # None: a key, min or max, or not known
    few: tuple[tuple[bool, ...], ...]
    slices: int  # the number read
    freshness: Mapping[str, int | None]  # by table, in microseconds; None: never loaded
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def share(self) -> Fraction:
        return Fraction(self.slices, SLICES)

    @property
    def is_complete(self) -> bool:
        return self.slices == SLICES

    def table(self) -> pa.Table:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        columns = [pa.array([row[at] for row in self.rows], field.type) for at, field in enumerate(schema)]
        return pa.Table.from_arrays(columns, schema=schema)


class PreparedRequest:
    """A request that Spark has analysed; it may run many times, in several sessions."""

    def __init__(self, session: SparkSession, sql: RequestSql, schemas: Mapping[str, StructType]) -> None:
        """Makes empty views with the tables' names in the session. Raises RequestRefused."""
        self.sql = sql
        self.schemas = {name: schemas[name] for name in sql.tables}
        self.named = {column.name.lower() for column in sql.query.find_all(exp.Column)}
        for name, schema in self.schemas.items():
            show_empty(session, name, schema, self.named)
        self.schema, self.text, is_faithful = _analysed(session, sql)
        self.in_slices = sql.in_slices
        self.rewritten = None
        if self.in_slices is not None and is_faithful:
            self.rewritten = self._rewritten(session, self.in_slices)

    @property
    def is_whole(self) -> bool:
        """Whether it is answered in a single part."""
        return self.rewritten is None

    def _rewritten(self, session: SparkSession, request: SlicedRequest) -> SlicedQuery | None:
        """The rewritten request; None if parts would not give the same answer as Spark."""
        sql = with_inputs(request.sql)
        of_tables = [self.schemas[each.table.name] for each in sql.tables.all]
        try:
            answer = session.sql(as_written(sql.select)).schema
            rewritten = SlicedQuery(sql, request.sides, of_tables, answer)
        except (InputError, UnsupportedError, PySparkException, Py4JJavaError):
            return None
        types = [field.dataType for field in answer.fields]
        return rewritten if can_apply(request.clauses, types) else None


class RequestRun:
    """A running request: one thread calls `read`; any thread may call `answer` and `cancel`."""

    def __init__(
        self,
        prepared: PreparedRequest,
        session: SparkSession,
        tables: Mapping[str, ReadTable],
        start: int | random.Random | None = None,
        now_us: int | None = None,
    ) -> None:
        """Slices are read from `start` on, or from a random one. All parts use the time `now_us`, or now.

        The session must belong to the reading thread.
        """
        self._prepared = prepared
        self._session = session
        drawn = random.Random() if start is None else start
        first = drawn.randrange(SLICES) if isinstance(drawn, random.Random) else drawn
        self._snapshots = {name: tables[name].snapshot for name in prepared.sql.tables}
        self._paths = {
            name: [tables[name].path / file.path for file in snapshot.files if file.rows]
            for name, snapshot in self._snapshots.items()
        }
        self._group = f"request-{uuid.uuid4().hex}"
        self._lock = threading.Lock()  # protects the attributes below
        self._is_cancelled = False
        self._parts: list[pa.Table] = []
        self._slices = 0
        self._reading: SliceReader | None = None
        if prepared.rewritten is not None and prepared.in_slices is not None:
            paths = [self._paths[each.table.name] for each in prepared.in_slices.sql.tables.all]
            instant = clock() if now_us is None else now_us
            sql = prepared.rewritten.partials.sql.replace(str(NOW), str(instant))
            self._reading = SliceReader(prepared.rewritten, session, paths, first, sql=sql)

    @property
    def is_whole(self) -> bool:
        """Whether it has a single part, of all slices."""
        return self._reading is None

    @property
    def slices_left(self) -> int:
        return SLICES - self._slices

    def read(self, slices: int) -> None:
        """Reads a part: the next `slices` slices, or all of a request that is whole.

        Raises `PartCancelled` if the part was cancelled and `RequestRefused` if the answer is too large.
        Other errors are Spark's, for example for a row that cannot be computed.
        """
        if not self.slices_left or slices < 1:
            return
        with self._lock:
            if self._is_cancelled:
                raise PartCancelled("the request was cancelled")
        try:
            with _job_group(self._session, self._group):
                found, read = self._read(min(slices, self.slices_left))
        except (PySparkException, Py4JError) as error:
            if self._is_cancelled:
                raise PartCancelled("the part that was read was cancelled") from error
            raise
        with self._lock:
            if self._is_cancelled:
                raise PartCancelled("the part that was read was cancelled")
            if found.num_rows + sum(part.num_rows for part in self._parts) > CELLS_MAX:
                what = f"it has more than {CELLS_MAX:,} groups by slice"
                raise RequestRefused("not_supported", what, "Group by columns with fewer values")
            self._parts.append(found)
            self._slices += read

    def cancel(self) -> None:
        """Ends the current part at once; no other follows."""
        with self._lock:
            self._is_cancelled = True
        context: Any = self._session.sparkContext
        context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def answer(self) -> RequestAnswer:
        """The answer from the parts so far. Raises RequestRefused for a sum beyond its type."""
        with self._lock:
            parts, slices = [*self._parts], self._slices
        freshness = {name: snapshot.freshness for name, snapshot in self._snapshots.items()}
        prepared = self._prepared
        if not slices:
            return RequestAnswer(prepared.schema, (), (), (), 0, freshness)
        if prepared.rewritten is None or prepared.in_slices is None:
            rows = tuple(tuple(row.values()) for row in _positional(parts[0]).to_pylist())
            width = len(prepared.schema.names)
            none: tuple[Interval, ...] = (None,) * width
            return RequestAnswer(
                prepared.schema, rows, (none,) * len(rows), ((False,) * width,) * len(rows), slices, freshness
            )
        rewritten, clauses = prepared.rewritten, prepared.in_slices.clauses
        try:
            merged = merged_columns(rewritten.partials, rewritten.schema, parts, slices, lends=False)
        except ArithmeticError as error:
            remedy = "Add up decimals or doubles, as in sum(CAST(x AS double))"
            raise RequestRefused("not_supported", str(error), remedy) from None
        left = chosen(clauses, [column.values for column in merged.columns])
        shown = merged.columns[: clauses.shown]
        said = clauses.in_words
        notes = () if said is None or slices == SLICES else (f"{said}: applied to estimates",)
        return RequestAnswer(
            prepared.schema,
            tuple(tuple(column.values[row] for column in shown) for row in left),
            tuple(tuple(_interval(column, row) for column in shown) for row in left),
            tuple(tuple(merged.scaled[row] and _is_few(column, row) for column in shown) for row in left),
            slices,
            freshness,
            notes,
        )

    def _read(self, slices: int) -> tuple[pa.Table, int]:
        reading = self._reading
        if reading is not None:
            before = reading.slices
            reading.read(slices)
            return reading.parts[-1], reading.slices - before
        for name, schema in self._prepared.schemas.items():
            rows = read_parquet(self._session, [*map(str, self._paths[name])], schema)
            columns = visible_columns(schema, self._prepared.named)
            rows.selectExpr(*map(quoted, columns)).createOrReplaceTempView(name)
        frame = self._session.sql(self._prepared.text)
        found = frame.limit(ROWS_MAX + 1).toArrow()
        if found.num_rows > ROWS_MAX:
            what = f"the answer has more than {ROWS_MAX:,} rows"
            raise RequestRefused("not_supported", what, "Group them, or add a LIMIT")
        return found, SLICES


def _analysed(session: SparkSession, sql: RequestSql) -> tuple[StructType, str, bool]:
    """The answer's columns, the SQL for all of it, and whether the parsed SQL is the same to Spark."""
    try:
        written = session.sql(sql.text)
        _check_joins(written)
        schema = StructType([StructField(field.name, field.dataType) for field in written.schema.fields])
    except PySparkException as error:
        raise RequestRefused(
            "bad_sql", f"Spark refuses the SQL: {first_line(error)}", "Mend the SQL"
        ) from None
    except Py4JJavaError as error:  # such as too many nested parts
        what = f"Spark cannot analyse the SQL: {sentence(error).rstrip('.')}"
        raise RequestRefused("not_supported", what, "Split it into several statements") from None
    try:
        is_faithful = is_same(session, sql.text, as_written(sql.query))
    except (PySparkException, Py4JJavaError, UnsupportedError):
        is_faithful = False
    return schema, sql.text, is_faithful


def _check_joins(frame: DataFrame) -> None:
    plan = str(frame._jdf.queryExecution().sparkPlan())
    if any(join in plan for join in _EACH_WITH_EACH):
        what = "it compares each row of one table with each of another"
        raise RequestRefused("not_supported", what, "Join by equal columns, as in `a JOIN b ON a.k = b.k`")


def _positional(rows: pa.Table) -> pa.Table:
    """The rows with numbered columns: two columns may have the same name."""
    return rows.rename_columns([str(number) for number in range(rows.num_columns)])


def _interval(column: AnswerColumn, row: int) -> Interval:
    low, high = (None, None) if column.bounds is None else column.bounds[row]
    return None if low is None or high is None else (low, high)


def _is_few(column: AnswerColumn, row: int) -> bool:
    return column.seen is not None and column.seen[row] < FEW_ROWS


@contextmanager
def _job_group(session: SparkSession, group: str) -> Iterator[None]:
    """Within this context this thread's Spark jobs belong to the group."""
    context = session.sparkContext
    before = context.getLocalProperty(_JOB_GROUP)
    context.setJobGroup(group, "Freshline, a request", interruptOnCancel=True)
    try:
        yield
    finally:
        context.setLocalProperty(_JOB_GROUP, before)  # type: ignore[arg-type]
