"""Updates of nothing, before the first real one: a cold JVM takes ten times as long."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.columns import LATE_COLUMN, parse_columns
from freshline.definitions.warehouse import Feed, Warehouse
from freshline.spark.frames import base_rows, derived_rows, late_expression, read_files

# Beyond these there is nothing new to compile that would be worth waiting for.
_TABLES_MAX = 12


def warm_up(
    session: SparkSession, warehouse: Warehouse, schemas: Mapping[str, StructType], folder: Path
) -> None:
    """Reads, transforms and writes empty data for the first tables, in a folder that is removed again."""
    try:
        for number, table in enumerate(list(warehouse.tables.values())[:_TABLES_MAX]):
            assert table.timestamp is not None
            if table.feed is not None:
                feed = warehouse.feeds[table.feed]
                files = read_files(session, feed, [_empty_file(session, feed, folder / f"in-{number}")])
                rows = base_rows(session, table, feed, files, late_expression(table.timestamp, 0, 1))
            else:
                sources = {
                    name: session.createDataFrame([], schemas[name]).drop(LATE_COLUMN)
                    for name in table.sources
                }
                rows = derived_rows(session, table, sources, 0, 1)
            rows.write.parquet(str(folder / f"out-{number}"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _empty_file(session: SparkSession, feed: Feed, path: Path) -> str:
    landing = feed.landing
    assert landing.schema is not None
    if landing.format == "parquet":
        session.createDataFrame([], landing.schema).write.parquet(str(path))
        return str(path)
    path.mkdir(parents=True)
    titles = ",".join(column.name for column in parse_columns(landing.schema))
    text = f"{titles}\n" if landing.format == "csv" and landing.header else ""
    (path / "empty").write_text(text, encoding="utf-8")
    return str(path / "empty")
