"""Rebuilds a derived table, late records included."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.base.align import last_edge
from freshline.base.errors import InputError
from freshline.definitions.computation import Computation
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.live.run.heartbeat import sole_writer
from freshline.live.tables.definition_changes import (
    column_differences,
    columns_remedy,
    stored_table,
)
from freshline.spark.loading.frames import derived_rows, read_parquet, up_to, whole_source_rows
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.sink import write_by_executors
from freshline.spark.loading.slices import dealt, slice_column
from freshline.sql.columns import RESERVED_COLUMNS
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.computations import told
from freshline.storage.delta.stored_table import StoredTable


def table_to_rebuild(warehouse: Warehouse, storage: Path, name: str) -> StoredDefinition:
    """The derived table of that name. InputError if it is clear without Spark that it cannot be rebuilt."""
    check_runnable(warehouse)
    table = warehouse.stored.get(name)
    if table is None:
        raise InputError(f"there is no table {name}", f"The tables are {', '.join(warehouse.stored)}")
    if table.feed is not None:
        raise InputError(f"{name} is a base table: it has every record already", "Name a derived table")
    if stored_table(StorageLayout(storage), table) is None:
        raise _never_loaded(table)
    return table


def rebuild(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> int:
    """Replaces a derived table by its query over all its sources' rows up to its freshness; returns its rows.

    The runner keeps late records out of derived tables; a rebuild includes them. The same commit gives the
    table the query's columns and records the computation. No run may use the storage.
    """
    table = table_to_rebuild(warehouse, storage, name)
    layout = StorageLayout(storage)
    with sole_writer(layout, warehouse.nodes, "rebuild"):
        return _replace(session, warehouse, layout, table)


def _replace(
    session: SparkSession, warehouse: Warehouse, layout: StorageLayout, table: StoredDefinition
) -> int:
    columns = schemas(session, warehouse)
    stored = stored_table(layout, table)
    if stored is None or stored.freshness is None:
        raise _never_loaded(table)
    schema = to_arrow_schema(columns[table.name], timezone="UTC")
    stored.check_can_have(schema)
    sources = {name: _source(layout, warehouse.stored[name], columns[name]) for name in table.sources}
    # A new `align`, its own or that of a rebuilt source, may lower the freshness. The next run loads the rows
    # that are then missing; an incomplete window would never be completed.
    reached = [source.freshness for source in sources.values() if source and source.freshness is not None]
    loaded_to = last_edge(min([stored.freshness, *reached]), table.align_us)
    frames = {
        name: _rows(session, source, warehouse.stored[name], columns[name], loaded_to, table.is_whole)
        for name, source in sources.items()
    }
    folder = f"data/rebuild-{uuid4().hex[:8]}"
    rows = dealt(
        derived_rows(session, table, frames, None, loaded_to), slice_column(table, columns[table.name])
    )
    write_by_executors(rows, stored, folder)
    computation = Computation.of(table, warehouse.feeds)
    details = {"table": table.name, "rebuilt": True, **told(stored.computation, computation, "rebuilt")}
    try:
        stored.commit(folder, loaded_to, (), details, schema, computation)
    except TableTaken as error:
        raise InputError(
            f"another writer has changed {table.name} meanwhile, so it was not rebuilt",
            "Rebuild it again",
        ) from error
    return sum(file.rows for file in stored.files)


def _source(layout: StorageLayout, source: StoredDefinition, columns: StructType) -> StoredTable | None:
    """The stored table of a source, which must have its defined columns; None if it was not made yet."""
    stored = stored_table(layout, source)
    if stored is not None:
        others = column_differences(stored, columns)
        if others:
            what = f"its source {source.name} differs from its definition: {others}"
            raise InputError(what, columns_remedy(source, others))
    return stored


def _rows(
    session: SparkSession,
    stored: StoredTable | None,
    source: StoredDefinition,
    columns: StructType,
    loaded_to: int,
    without_late: bool,
) -> DataFrame:
    """A source's rows up to an instant. A table that is computed whole would lose late ones again."""
    files = [] if stored is None else [str(stored.path / file.path) for file in stored.files if file.rows]
    rows = read_parquet(session, files, columns)
    if without_late:
        return whole_source_rows(rows, columns, source.timestamp, loaded_to)
    return up_to(rows, source.timestamp, loaded_to).drop(*RESERVED_COLUMNS)


def _never_loaded(table: StoredDefinition) -> InputError:
    return InputError(f"nothing was ever loaded into {table.name}", "Run the warehouse first")
