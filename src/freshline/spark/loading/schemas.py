"""The columns of tables according to Spark's analysis of their definitions, and checks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.spark.loading.frames import base_rows, no_rows
from freshline.spark.loading.nondeterminism import unsteady
from freshline.spark.loading.shedding import check_value
from freshline.spark.loading.slices import SLICE_FIELD, check_slices
from freshline.spark.session.quoting import quoted
from freshline.sql.clock import sql_at
from freshline.sql.columns import LATE_COLUMN, RESERVED_COLUMNS

# The types of a Delta table. It has no intervals, times of day, geographic types, or the type of NULL.
_HELD = (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)


def schemas(
    session: SparkSession, warehouse: Warehouse, looked_at: Callable[[], None] = lambda: None
) -> dict[str, StructType]:
    """The columns of every table, found by Spark's analysis of the definitions over empty tables.

    All wrong tables are reported at once, except those that read a wrong one. `looked_at` is called after
    each table.
    """
    found: dict[str, StructType] = {}
    errors: list[InputError] = []
    empty = _EmptyTables(session, warehouse, found)
    # Base tables first: a view of a feed may have the name of a table.
    for name in sorted(warehouse.stored_order, key=lambda name: warehouse.stored[name].feed is None):
        table = warehouse.stored[name]
        if not all(source in found for source in table.sources):
            continue
        try:
            found[name] = _schema(empty, table)
        except InputError as error:
            if str(error) not in map(str, errors):  # two tables of a wrong feed have the same error
                errors.append(error)
        looked_at()
    if errors:
        raise DefinitionErrors(errors)
    return found


def _schema(empty: _EmptyTables, table: StoredDefinition) -> StructType:
    try:
        rows = empty.rows(table)
        changing = unsteady(rows)
    except (PySparkException, Py4JJavaError) as error:
        # For a bug in Spark itself, Py4J's opening comes first.
        lines = [line for line in str(error).splitlines() if not line.startswith("An error occurred while")]
        sentence = lines[0].removeprefix(": ").rstrip(".")
        raise InputError(
            f"Spark refuses table {table.name}: {sentence}", "Mend its SQL", table.place
        ) from error
    # A data file keeps its name; a table's files do not.
    if table.feed is not None:
        changing = [name for name in changing if name != "input_file_name"]
    if changing:
        raise InputError(
            f"table {table.name}: `{changing[0]}` gives something else each time it is asked",
            "Use only what the records say, such as their timestamps",
            table.place,
        )
    _check_held(table, rows.schema)
    columns = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    if not (table.is_whole and table.timestamp is None) and columns.get(table.timestamp or "") != "timestamp":
        listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        raise InputError(
            f"table {table.name} has no column {table.timestamp} of type timestamp (it has {listed})",
            "Select it, or name the right one with `timestamp`",
            table.place,
        )
    check_slices(table, rows.schema)
    late = [] if table.feed is None else [StructField(LATE_COLUMN, BooleanType())]
    return StructType([*rows.schema.fields, *late, *([] if table.slices is None else [SLICE_FIELD])])


class _EmptyTables:
    """The results of definitions over no rows. Each feed and source is made once, to save time."""

    def __init__(self, session: SparkSession, warehouse: Warehouse, known: Mapping[str, StructType]) -> None:
        self._session = session
        self._warehouse = warehouse
        self._known = known
        self._feeds: dict[str, DataFrame] = {}
        self._views: set[str] = set()

    def rows(self, table: StoredDefinition) -> DataFrame:
        if table.feed is not None:
            feed = self._warehouse.feeds[table.feed]
            return base_rows(self._session, table, feed, self._feed(feed))
        for source in table.sources:
            if source not in self._views:
                fields = [field for field in self._known[source].fields if field.name not in RESERVED_COLUMNS]
                no_rows(self._session, StructType(fields)).createOrReplaceTempView(source)
                self._views.add(source)
        assert table.sql is not None
        return self._session.sql(sql_at(table.sql, 0) if table.is_whole else table.sql)

    def _feed(self, feed: Feed) -> DataFrame:
        if feed.name not in self._feeds:
            assert feed.landing.schema is not None
            _check_declared(feed)
            self._feeds[feed.name] = no_rows(self._session, feed.landing.schema)
            check_value(self._feeds[feed.name], feed)
        return self._feeds[feed.name]


def _check_declared(feed: Feed) -> None:
    """Rejects texts of a given length, which Spark does not allow in a data frame."""
    assert feed.landing.schema is not None
    declared = DataType.fromDDL(feed.landing.schema)
    assert isinstance(declared, StructType)
    for field in declared.fields:
        kind = field.dataType.simpleString()
        if "char(" in kind:
            what = f"Spark cannot read column {field.name} of feed {feed.name}: its type is {kind}"
            raise InputError(what, "Declare string instead", feed.place)


def _check_held(table: StoredDefinition, schema: StructType) -> None:
    for field in schema.fields:
        unheld = _not_held(field.dataType)
        if unheld is not None:
            kind = field.dataType.simpleString()
            raise InputError(
                f"column {field.name} of table {table.name} is {kind}, but Delta cannot hold {unheld}",
                f"Give it another type, such as CAST(... AS string) AS {quoted(field.name)}",
                table.place,
            )
    twice = _twice(schema)
    if twice is not None:
        raise InputError(
            f"table {table.name} has two columns {twice} (upper and lower case are the same)",
            "Name the columns instead of `*`, and give one of the two another name with AS",
            table.place,
        )


def _not_held(kind: DataType) -> str | None:
    """The part of a type, nested types included, that a Delta table cannot hold."""
    if isinstance(kind, StructType) and kind.fields:
        twice = _twice(kind)
        return f"two fields {twice}" if twice else _first(field.dataType for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _not_held(kind.elementType)
    if isinstance(kind, MapType):
        return _first((kind.keyType, kind.valueType))
    return None if isinstance(kind, _HELD) else kind.simpleString()


def _first(kinds: Iterable[DataType]) -> str | None:
    return next((found for kind in kinds if (found := _not_held(kind)) is not None), None)


def _twice(schema: StructType) -> str | None:
    names = [name.lower() for name in schema.names]
    return next((name for name in schema.names if names.count(name.lower()) > 1), None)
