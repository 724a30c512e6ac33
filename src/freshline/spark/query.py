"""Questions about tables as they are, without a runner."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from freshline.definitions.errors import InputError
from freshline.definitions.warehouse import Warehouse
from freshline.spark.frames import literal_paths
from freshline.storage.delta import StoredTable
from freshline.storage.layout import Layout


def query(session: SparkSession, warehouse: Warehouse, storage: Path, sql: str) -> DataFrame:
    """The answer to a SQL query over the warehouse's tables, each at its newest commit."""
    layout = Layout(storage)
    for table in warehouse.tables.values():
        path = layout.table(table.name)
        if not (path / "_delta_log").is_dir():
            continue  # it has not been made yet; asking for it gets Spark's own sentence
        stored = StoredTable.open(path, table.timestamp or "")
        files = literal_paths([str(stored.path / file.path) for file in stored.files])
        schema = from_arrow_schema(stored.schema)
        frame = session.read.schema(schema).parquet(*files) if files else session.createDataFrame([], schema)
        frame.createOrReplaceTempView(table.name)
    try:
        return session.sql(sql)
    except PySparkException as error:
        sentence = str(error).splitlines()[0].rstrip(".")
        names = ", ".join(warehouse.tables)
        raise InputError(f"Spark refuses the query: {sentence}", f"The tables are {names}") from error
