"""Groups tables whose updates have the same plan: Spark runs the same code, so one warm-up is enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql.types import DataType, StructType
from sqlglot import exp

from freshline.definitions.warehouse import Warehouse
from freshline.sql.dialect import SPARK
from freshline.sql.query import parse_query


def alike(warehouse: Warehouse, schemas: Mapping[str, StructType]) -> list[tuple[str, ...]]:
    """The tables grouped by the plans of their updates: each table once, groups ordered by first table.

    Two plans are alike if they differ only in names and constants: the types that they read and give, the
    files' format and the steps in between are the same. Spark writes some constants into the code that it
    generates; compiling that again costs little compared with a cold start.
    """
    found: dict[object, list[str]] = {}
    for name in warehouse.stored:
        found.setdefault(_plan(warehouse, name, schemas), []).append(name)
    return [tuple(tables) for tables in found.values()]


def _plan(warehouse: Warehouse, name: str, schemas: Mapping[str, StructType]) -> object:
    table = warehouse.stored[name]
    if table.feed is None:
        how: object = None
        read = {source: schemas[source] for source in table.sources}
    else:
        landing = warehouse.feeds[table.feed].landing
        shed = warehouse.feeds[table.feed].shed
        how = (landing.format, landing.header, landing.encoding, landing.delimiter, shed and shed.value)
        assert landing.schema is not None
        declared = DataType.fromDDL(landing.schema)
        assert isinstance(declared, StructType)
        read = {table.feed: declared}
    text = table.sql or table.select
    steps = None if text is None else _steps(text, {source: schema.names for source, schema in read.items()})
    given = schemas[name]
    # The timestamp limits the result to the loaded range.
    limit = None if table.timestamp is None else given.names.index(table.timestamp)
    return how, table.is_whole, tuple(map(_types, read.values())), steps, _types(given), limit


def _types(schema: StructType) -> tuple[str, ...]:
    return tuple(field.dataType.simpleString() for field in schema.fields)


def _steps(sql: str, read: Mapping[str, Sequence[str]]) -> str:
    """A query without its constants and with numbers instead of names.

    A table's name becomes its place among the tables read, a column's name its place among their columns.
    Names that the query introduces are counted.
    """
    places: dict[str, str] = {}
    for number, (table, columns) in enumerate(read.items()):
        places.setdefault(table.lower(), f"t{number}")
        for place, column in enumerate(columns):
            places.setdefault(column.lower(), f"c{number}_{place}")
    query = parse_query(sql)
    for identifier in query.find_all(exp.Identifier, bfs=False):
        named = places.setdefault(identifier.name.lower(), f"n{len(places)}")
        identifier.set("this", named)
        identifier.set("quoted", False)
    for literal in _constants(query):
        literal.set("this", "0")
    return query.sql(SPARK, comments=False)


def _constants(query: exp.Query) -> Iterable[exp.Literal]:
    """The constants of a query, except those within a type, as in `decimal(9, 2)`."""
    return [each for each in query.find_all(exp.Literal) if not isinstance(each.parent, exp.DataTypeParam)]
