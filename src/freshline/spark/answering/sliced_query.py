"""A SELECT that Spark has analysed and that can be read in parts of some slices each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.warehouse import Warehouse
from freshline.spark.answering.partials import Partials, partials_of
from freshline.spark.loading.slices import slice_together
from freshline.sql.columns import LATE_COLUMN, SLICE_COLUMN
from freshline.sql.from_tables import ReadableTable, columns_of
from freshline.sql.query_sql import QuerySql
from freshline.sql.time_units import units_in_capitals


class SlicedQuery:
    """The SQL of the parts and the columns that they read. `answer` has the types of the whole answer."""

    def __init__(
        self, sql: QuerySql, sides: Collection[int], schemas: Sequence[StructType], answer: StructType
    ) -> None:
        """`schemas` are those of the tables in the FROM, in order; `sql` includes its inputs."""
        self.schemas = schemas
        self.schema = answer
        self._named = named_columns(sql)
        self.sliced = _sliced_together(sorted(sides), sql, schemas)
        self.partials: Partials = partials_of(
            sql, self.sliced, {field.name: field.dataType for field in answer.fields}
        )

    def visible(self, place: int) -> list[str]:
        """The columns of a table that the SQL can name."""
        return visible_columns(self.schemas[place], self._named)


def named_columns(sql: QuerySql) -> set[str]:
    """The names of columns in the SQL, in lower case."""
    return {column.name.lower() for column in columns_of(sql.select)}


def visible_columns(schema: StructType, named: Collection[str]) -> list[str]:
    """The columns of a table that are visible to SQL with these names; `*` includes no others."""
    own = {SLICE_COLUMN, *(() if LATE_COLUMN in named else (LATE_COLUMN,))}
    return [name for name in schema.names if name not in own]


def show_empty(session: SparkSession, name: str, schema: StructType, named: Collection[str]) -> None:
    """Makes an empty view of a table, for Spark's analysis of SQL."""
    shown = StructType([schema[each] for each in visible_columns(schema, named)])
    session.createDataFrame([], shown).createOrReplaceTempView(name)


def readable(warehouse: Warehouse, schemas: Mapping[str, StructType]) -> dict[str, ReadableTable]:
    """The tables that SQL can read."""
    own = (LATE_COLUMN, SLICE_COLUMN)
    return {
        name: ReadableTable(
            name,
            tuple(each.lower() for each in schemas[name].names if each not in own),
            table.timestamp,
            table.slices,
        )
        for name, table in warehouse.stored.items()
    }


def is_same(session: SparkSession, sql: str, written_again: str) -> bool:
    """Whether two texts are the same query to Spark, as `IS NOT NULL` and `NOT ... IS NULL` are.

    Both get the same current time, which Spark sets once for each plan, and units of time in capitals.
    """
    frames = [session.sql(units_in_capitals(sql)), session.sql(written_again)]
    catalyst: Any = session._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    plans = [frame._jdf.queryExecution().analyzed() for frame in frames]
    union = getattr(getattr(catalyst.plans.logical, "Union$"), "MODULE$")  # Scala's companion object
    at_one_time = catalyst.optimizer.ComputeCurrentTime.apply(union.apply(*plans))
    optimizer = session._jsparkSession.sessionState().optimizer()
    one, other = (optimizer.execute(at_one_time.children().apply(place)) for place in (0, 1))
    return bool(one.sameResult(other)) and frames[0].schema == frames[1].schema


def _sliced_together(places: Sequence[int], sql: QuerySql, schemas: Sequence[StructType]) -> frozenset[int]:
    """The places of the FROM that are read in slices; one only if the slices' keys do not match."""
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
