"""Queries over stored tables, without a runner."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from sqlglot import exp

from freshline.base.errors import InputError
from freshline.definitions.warehouse import Warehouse
from freshline.spark.errors import first_line
from freshline.spark.loading.frames import read_parquet
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.query import parse_query, tables_named
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.stored_table import StoredTable


def check_query(warehouse: Warehouse, storage: Path, sql: str) -> None:
    """Raises `InputError` if the SQL is not a query over existing tables. It does not use Spark."""
    by_folded = {name.lower(): name for name in warehouse.stored}
    for named in tables_named(sql):
        name = by_folded.get(named.lower())
        if name is None:
            raise InputError(f"there is no table `{named}`", f"The tables are {', '.join(warehouse.stored)}")
        if not _is_made(storage, name):
            raise InputError(f"nothing has been loaded into table {name} yet", "`freshline run` loads it")


def query(session: SparkSession, warehouse: Warehouse, storage: Path, sql: str) -> DataFrame:
    """The answer to a SQL query over the warehouse's tables, each at its newest commit.

    The column of slices is visible to a query that names it.
    """
    check_query(warehouse, storage, sql)
    layout = StorageLayout(storage)
    named = parse_query(sql).find_all(exp.Column)
    asks_for_slices = any(column.name.lower() == SLICE_COLUMN for column in named)
    for table in warehouse.stored.values():
        if not _is_made(storage, table.name):
            continue
        stored = StoredTable.open(layout.table(table.name), table.timestamp or "")
        files = [str(stored.path / file.path) for file in stored.files]
        rows = read_parquet(session, files, from_arrow_schema(stored.schema))
        if not asks_for_slices:
            rows = rows.drop(SLICE_COLUMN)  # not a user's column, so `*` leaves it out
        rows.createOrReplaceTempView(table.name)
    try:
        return session.sql(sql)
    except PySparkException as error:
        raise InputError(f"Spark refuses the query: {first_line(error)}", "Mend the query") from error


def is_too_deep(error: Exception) -> bool:
    """Whether an expression was too deep for Java's stack."""
    return any(words in str(error) for words in ("StackOverflowError", "FAILED_TO_PARSE_TOO_COMPLEX"))


def _is_made(storage: Path, table: str) -> bool:
    return (StorageLayout(storage).table(table) / "_delta_log").is_dir()
