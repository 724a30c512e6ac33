"""A base table that takes over columns which its feed has got since."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.definitions.computation import Computation, changes, only_adds
from freshline.definitions.errors import InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.live.changes import column_differences, columns_remedy, stored_table
from freshline.live.heartbeat import sole_writer
from freshline.spark.frames import schemas
from freshline.storage.delta import TableTaken
from freshline.storage.layout import Layout
from freshline.storage.migration import add_columns


@dataclass(frozen=True, slots=True)
class Migrated:
    """The columns that a table got, what has changed besides, and whom that concerns."""

    added: tuple[str, ...]
    changed: tuple[str, ...]  # what the next run will ask about
    to_rebuild: tuple[
        str, ...
    ]  # tables downstream whose columns are others now, in the order to rebuild them


def table_to_migrate(warehouse: Warehouse, storage: Path, name: str) -> Table:
    """The base table of that name, if it can be migrated as far as can be told without Spark."""
    check_runnable(warehouse)
    table = warehouse.tables.get(name)
    if table is None:
        raise InputError(f"there is no table {name}", f"The tables are {', '.join(warehouse.tables)}")
    if table.feed is None:
        raise InputError(f"{name} is a derived table", f"Make it anew with 'freshline rebuild {name}'")
    if stored_table(Layout(storage), table) is None:
        what = f"there are no rows of {name} yet"
        raise InputError(what, "Run the warehouse: it makes the table with all its columns")
    return table


def migrate(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> Migrated:
    """Adds the columns that a base table's definition has and the table lacks; null in the rows there are.

    It needs the storage for itself. A table that has every column stays as it is.
    """
    table = table_to_migrate(warehouse, storage, name)
    layout = Layout(storage)
    layout.prepare()
    with sole_writer(layout.lease, "migrate"):
        return _widen(warehouse, layout, table, schemas(session, warehouse))


def _widen(warehouse: Warehouse, layout: Layout, table: Table, columns: dict[str, StructType]) -> Migrated:
    stored = stored_table(layout, table)
    assert stored is not None  # it was there a moment ago, and nobody deletes tables
    found = column_differences(stored, columns[table.name])
    if found and not found.is_wider:
        what = f"{table.name} cannot be migrated to what is defined: {found}"
        raise InputError(what, columns_remedy(table, found), table.place)
    before, now = stored.computation, Computation.of(table)
    if found:
        schema = to_arrow_schema(columns[table.name], timezone="UTC")
        stored.check_can_have(schema)
        recorded = None
        if before is not None and only_adds(before.select, now.select, found.missing):
            before = recorded = replace(before, select=now.select)
        try:
            add_columns(stored, [schema.field(name) for name in found.missing], recorded)
        except TableTaken as error:
            what = f"another writer has changed {table.name} meanwhile, and it stays as that left it"
            raise InputError(what, "Migrate it again") from error
    return Migrated(
        found.missing,
        () if before is None else tuple(changes(before, now)),
        _to_rebuild(warehouse, layout, table, columns),
    )


def _to_rebuild(
    warehouse: Warehouse, layout: Layout, table: Table, columns: dict[str, StructType]
) -> tuple[str, ...]:
    """The tables downstream that have other columns than they are defined with, as by `SELECT *`."""
    downstream = {table.name}
    found = []
    for name in warehouse.topological_order:
        if downstream.isdisjoint(warehouse.tables[name].sources):
            continue
        downstream.add(name)
        stored = stored_table(layout, warehouse.tables[name])
        if stored is not None and column_differences(stored, columns[name]):
            found.append(name)
    return tuple(found)
