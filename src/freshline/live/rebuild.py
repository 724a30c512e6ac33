"""A derived table made anew, late records included."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from freshline.definitions.columns import LATE_COLUMN
from freshline.definitions.errors import InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Warehouse
from freshline.live.heartbeat import Heartbeat
from freshline.spark.frames import between, derived_rows, literal_paths
from freshline.storage.delta import StoredTable
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity, Lease


def rebuild(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> int:
    """Replaces a derived table by its query over all its sources' rows up to its freshness; its rows.

    The runner keeps late records out of derived tables; this takes them in. It needs the storage for itself.
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
        assert table.timestamp is not None
        stored = _open(layout, name, table.timestamp)
        freshness = stored.freshness
        if freshness is None:
            raise InputError(f"nothing was ever loaded into {name}", "Run the warehouse first")
        views = {}
        for source in table.sources:
            definition = warehouse.tables[source]
            assert definition.timestamp is not None
            files = _open(layout, source, definition.timestamp).files_between(-1, freshness)
            if not files:
                raise InputError(f"its source {source} holds no rows up to there", "Load it first")
            rows = session.read.parquet(*literal_paths(files))
            frame = between(rows, definition.timestamp, None, freshness)
            views[source] = frame.drop(LATE_COLUMN)
        folder = f"data/rebuild-{uuid4().hex[:8]}"
        derived_rows(session, table, views, None, freshness).write.parquet(str(stored.path / folder))
        stored.commit(folder, freshness, (), {"table": name, "rebuilt": True}, replacing=True)
        return sum(file.rows for file in stored.files)
    finally:
        heartbeat.stop()
        lease.release()


def _open(layout: Layout, name: str, timestamp: str) -> StoredTable:
    path = layout.table(name)
    if not (path / "_delta_log").is_dir():
        raise InputError(f"table {name} has not been made yet", "Run the warehouse first")
    return StoredTable.open(path, timestamp)
