"""Migrates a base table to new columns of its feed or to other slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from freshline.base.errors import InputError
from freshline.definitions.computation import Computation, changes, only_adds
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.live.run.heartbeat import sole_writer
from freshline.live.tables.definition_changes import column_differences, columns_remedy, stored_table
from freshline.spark.loading.frames import read_parquet
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.sink import write_by_executors
from freshline.spark.loading.slices import dealt, outliers_of, slice_column
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import SLICE_COLUMN
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.computations import told
from freshline.storage.delta.extent import Extent
from freshline.storage.delta.migration import add_columns
from freshline.storage.delta.stored_table import StoredTable


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """The columns that a table got, its other changes, and the tables downstream to rebuild."""

    added: tuple[str, ...]
    changed: tuple[str, ...]  # the changes that the next run will ask about
    to_rebuild: tuple[str, ...]  # tables downstream whose columns differ now, in the order of their rebuilds
    is_dealt: bool = False  # its rows were rewritten, in other slices or in none


def table_to_migrate(warehouse: Warehouse, storage: Path, name: str) -> StoredDefinition:
    """The base table of that name. InputError if it is clear without Spark that it cannot be migrated."""
    check_runnable(warehouse)
    table = warehouse.stored.get(name)
    if table is None:
        raise InputError(f"there is no table {name}", f"The tables are {', '.join(warehouse.stored)}")
    if table.feed is None:
        raise InputError(f"{name} is a derived table", f"Rebuild it with 'freshline rebuild {name}'")
    if stored_table(StorageLayout(storage), table) is None:
        what = f"there are no rows of {name} yet"
        raise InputError(what, "Run the warehouse: it makes the table with all its columns")
    return table


def migrate(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> MigrationResult:
    """Adds the columns that a base table lacks; they are null in existing rows.

    If the table's slices differ from its definition, its rows are rewritten in new slices. No run may use the
    storage. A table that has every column stays as it is.
    """
    table = table_to_migrate(warehouse, storage, name)
    layout = StorageLayout(storage)
    with sole_writer(layout, warehouse.nodes, "migrate"):
        columns = schemas(session, warehouse)
        return _migrate(session, warehouse, layout, table, columns)


def _migrate(
    session: SparkSession,
    warehouse: Warehouse,
    layout: StorageLayout,
    table: StoredDefinition,
    columns: dict[str, StructType],
) -> MigrationResult:
    stored = stored_table(layout, table)
    assert stored is not None  # it was there a moment ago, and Freshline deletes no tables
    found = column_differences(stored, columns[table.name])
    others = found.without(SLICE_COLUMN)
    now = Computation.of(table, warehouse.feeds)
    is_dealt = stored.computation is not None and stored.computation.slices != now.slices
    is_dealt = bool(stored.files) and (is_dealt or others != found)
    if (others if is_dealt else found) and not others.is_wider:
        what = f"{table.name} cannot be migrated to its definition: {found}"
        raise InputError(what, columns_remedy(table, found), table.place)
    try:
        before = _widened(session, stored, table, now, columns[table.name], found.missing, is_dealt)
    except TableTaken as error:
        what = f"another writer has changed {table.name} meanwhile, so it was not migrated"
        raise InputError(what, "Migrate it again") from error
    return MigrationResult(
        others.missing,
        () if before is None else tuple(changes(before, now)),
        _to_rebuild(warehouse, layout, table, columns),
        is_dealt,
    )


def _widened(
    session: SparkSession,
    stored: StoredTable,
    table: StoredDefinition,
    now: Computation,
    columns: StructType,
    missing: tuple[str, ...],
    is_dealt: bool,
) -> Computation | None:
    """Adds the missing columns to the table; returns the computation of its rows."""
    before = stored.computation
    if not missing and not is_dealt:
        return before
    schema = to_arrow_schema(columns, timezone="UTC")
    stored.check_can_have(schema)
    recorded = before
    if before is not None and only_adds(before.select, now.select, missing):
        recorded = replace(before, select=now.select)
    if recorded is not None:
        recorded = replace(recorded, slices=now.slices)
    if is_dealt:
        deal_anew(session, stored, table, columns, recorded or now)
    else:
        changed = recorded if recorded != before else None
        add_columns(stored, [schema.field(name) for name in missing], changed)
    return recorded


def _to_rebuild(
    warehouse: Warehouse, layout: StorageLayout, table: StoredDefinition, columns: dict[str, StructType]
) -> tuple[str, ...]:
    """The tables downstream whose columns differ from their definitions now, for example by `SELECT *`."""
    downstream = {table.name}
    found = []
    for name in warehouse.stored_order:
        if downstream.isdisjoint(warehouse.stored[name].sources):
            continue
        downstream.add(name)
        stored = stored_table(layout, warehouse.stored[name])
        if stored is not None and column_differences(stored, columns[name]):
            found.append(name)
    return tuple(found)


def deal_anew(
    session: SparkSession, stored: StoredTable, table: StoredDefinition, columns: StructType, now: Computation
) -> None:
    """Rewrites all files of a base table in one commit, with its rows in new slices or in none.

    The commit also records the computation of the rows. Columns that the table lacks are null in its rows.
    """
    assert stored.freshness is not None
    files = [str(stored.path / file.path) for file in stored.files]
    there = from_arrow_schema(stored.schema)
    rows = read_parquet(session, files, there)
    kept = [field for field in columns.fields if field.name != SLICE_COLUMN]
    rows = rows.select(
        *(
            f.col(quoted(field.name))
            if field.name in there.names
            else f.lit(None).cast(field.dataType).alias(field.name)
            for field in kept
        )
    )
    folder = f"data/slices-{uuid4().hex[:8]}"
    write_by_executors(dealt(rows, slice_column(table, columns)), stored, folder, outliers_of(table))
    schema = to_arrow_schema(columns, timezone="UTC")
    before = stored.computation
    details = {"table": table.name, "dealt": now.slices, **told(before, now, "migrated")}
    expected = Extent(sum(file.rows for file in stored.files), None, None)
    stored.commit(folder, stored.freshness, (), details, schema, now, expected, how="migrated")
