"""A derived table made anew, late records included."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from deltalake import Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.definitions.columns import LATE_COLUMN
from freshline.definitions.errors import InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Table, Warehouse
from freshline.live.heartbeat import Heartbeat
from freshline.spark.frames import between, derived_rows, read_parquet, schemas
from freshline.storage.delta import StoredTable, TableTaken
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity, Lease
from freshline.storage.schema import differences


def rebuild(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> int:
    """Replaces a derived table by its query over all its sources' rows up to its freshness; its rows.

    The runner keeps late records out of derived tables; this takes them in. Where the query has other columns
    than the table, the table gets them in the same commit. It needs the storage for itself.
    """
    check_runnable(warehouse)
    table = warehouse.tables.get(name)
    if table is None:
        raise InputError(f"there is no table {name}", f"The tables are {', '.join(warehouse.tables)}")
    if table.feed is not None:
        raise InputError(f"{name} is a base table: it has every record already", "Name a derived table")
    layout = Layout(storage)
    layout.prepare()
    lease = Lease.acquire(layout.lease, Identity.mine(f"rebuild-{uuid4().hex[:6]}"))
    # Should the lease be lost all the same, the commit of whoever has it then makes ours fail.
    heartbeat = Heartbeat(lease, lambda reason: None)
    heartbeat.start()
    try:
        return _replace(session, warehouse, layout, table)
    finally:
        heartbeat.stop()
        lease.release()


def _replace(session: SparkSession, warehouse: Warehouse, layout: Layout, table: Table) -> int:
    columns = schemas(session, warehouse)
    stored = _opened(layout, table)
    if stored is None or stored.freshness is None:
        raise InputError(f"nothing was ever loaded into {table.name}", "Run the warehouse first")
    schema = to_arrow_schema(columns[table.name], timezone="UTC")
    stored.check_can_have(schema)
    sources = {
        name: _rows(session, layout, warehouse.tables[name], columns[name], stored.freshness)
        for name in table.sources
    }
    folder = f"data/rebuild-{uuid4().hex[:8]}"
    derived_rows(session, table, sources, None, stored.freshness).write.parquet(str(stored.path / folder))
    details = {"table": table.name, "rebuilt": True}
    try:
        stored.commit(folder, stored.freshness, (), details, replacing=schema)
    except TableTaken as error:
        raise InputError(
            f"another writer has changed {table.name} meanwhile, and it stays as that left it",
            "Rebuild it again",
        ) from error
    return sum(file.rows for file in stored.files)


def _rows(
    session: SparkSession, layout: Layout, source: Table, columns: StructType, freshness: int
) -> DataFrame:
    """A source's rows up to an instant, late ones included; none of one that was not made yet."""
    assert source.timestamp is not None
    stored = _opened(layout, source)
    if stored is not None:
        defined = Schema.from_arrow(to_arrow_schema(columns, timezone="UTC"))
        others = differences(Schema.from_arrow(stored.schema), defined)
        if others:
            raise InputError(
                f"its source {source.name} is not as it is defined: {'; '.join(others)}",
                f"Rebuild {source.name} first" if source.feed is None else "Define it as it was",
            )
    files = [] if stored is None else stored.files_between(None, freshness)
    frame = between(read_parquet(session, files, columns), source.timestamp, None, freshness)
    return frame.drop(LATE_COLUMN)


def _opened(layout: Layout, table: Table) -> StoredTable | None:
    """A table as it is stored; None where it was never made."""
    assert table.timestamp is not None
    path = layout.table(table.name)
    return StoredTable.open(path, table.timestamp) if (path / "_delta_log").is_dir() else None
