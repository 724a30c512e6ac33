"""Verifies that a derived table equals its query over the versions of its sources that it read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, DoubleType, FloatType, StringType, StructType

from freshline.base.errors import InputError
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.live.tables.definition_changes import column_differences, columns_remedy, stored_table
from freshline.spark.loading.frames import derived_rows, read_parquet, whole_source_rows
from freshline.spark.loading.schemas import schemas
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import RESERVED_COLUMNS
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta import log
from freshline.storage.delta.snapshot import read_snapshot
from freshline.storage.delta.stored_table import StoredTable

_EXAMPLES = 5
# Sums of floating-point numbers depend on the order of rows in their last digits.
_DIGITS = "%.11e"


@dataclass(frozen=True, slots=True)
class Verification:
    """The rows of a table and how they differ from its query."""

    table: str
    version: int
    freshness: int
    rows: int
    missing: int  # the query gives them, and the table lacks them
    extra: int  # the table has them, and the query does not give them
    examples: tuple[str, ...] = ()
    late: int = 0  # rows of its sources that came late: a rebuild includes them, an update does not

    @property
    def is_equal(self) -> bool:
        return not self.missing and not self.extra


def verify(session: SparkSession, warehouse: Warehouse, storage: Path, name: str) -> Verification:
    """Computes the query of a table again, and compares. A run may use the storage meanwhile."""
    layout = StorageLayout(storage)
    table = warehouse.stored[name]
    columns = schemas(session, warehouse)
    stored = stored_table(layout, table)
    if stored is None or stored.freshness is None:
        raise InputError(f"nothing was ever loaded into {name}", "Run the warehouse first")
    others = column_differences(stored, columns[name])
    if others:
        raise InputError(f"{name} differs from its definition: {others}", columns_remedy(table, others))
    freshness, read = stored.freshness, _versions_read(stored)
    frames = {}
    late = 0
    for source in table.sources:
        rows = _source(session, layout, warehouse.stored[source], columns[source], read.get(source))
        timestamp = warehouse.stored[source].timestamp
        frames[source] = whole_source_rows(rows, columns[source], timestamp, freshness)
        if warehouse.stored[source].feed is not None:
            late += rows.where("_late").count()
    expected = derived_rows(session, table, frames, None, freshness)
    files = [str(stored.path / file.path) for file in stored.files if file.rows]
    found = read_parquet(session, files, columns[name]).drop(*RESERVED_COLUMNS)
    return _compared(table, stored, found.select(*map(quoted, expected.columns)), expected, late)


def _versions_read(stored: StoredTable) -> dict[str, int]:
    """The versions that the newest update names. Rows that were appended do not change with later ones."""
    for version in range(stored.version, -1, -1):
        try:
            told = log.commit_information(stored.path, version)
        except FileNotFoundError:
            break
        if "read" in told:
            return dict(told["read"])
        if "job" in told or "rebuilt" in told:
            break
    return {}


def _source(
    session: SparkSession,
    layout: StorageLayout,
    source: StoredDefinition,
    columns: StructType,
    version: int | None,
) -> DataFrame:
    path = layout.table(source.name)
    if not (path / "_delta_log").is_dir():
        return read_parquet(session, [], columns)
    try:
        opened = DeltaTable(path, version=version)
    except DeltaError as error:
        what = f"version {version} of {source.name}, which was read, is no longer kept"
        raise InputError(what, "Let the table be updated, or give it a longer `history`") from error
    snapshot = read_snapshot(path, source.timestamp or "", opened)
    return read_parquet(session, [str(path / file.path) for file in snapshot.files if file.rows], columns)


def _compared(
    table: StoredDefinition, stored: StoredTable, found: DataFrame, expected: DataFrame, late: int
) -> Verification:
    rows = found.count()
    found, expected = _comparable(found), _comparable(expected)
    missing, extra = expected.exceptAll(found).cache(), found.exceptAll(expected).cache()
    try:
        counts = missing.count(), extra.count()
        examples = [f"missing: {_line(row)}" for row in missing.take(_EXAMPLES)]
        examples += [f"not of the query: {_line(row)}" for row in extra.take(_EXAMPLES)]
    finally:
        missing.unpersist()
        extra.unpersist()
    assert stored.freshness is not None
    return Verification(
        table.name, stored.version, stored.freshness, rows, *counts, tuple(examples[:_EXAMPLES]), late
    )


def _comparable(rows: DataFrame) -> DataFrame:
    return rows.select(*(_text(field.name, field.dataType) for field in rows.schema.fields))


def _text(name: str, kind: DataType) -> Column:
    column = f.col(quoted(name))
    if isinstance(kind, DoubleType | FloatType):
        column = f.format_string(_DIGITS, column.cast("double"))
    elif not isinstance(kind, StringType) and (kind.simpleString().startswith(("map", "struct", "array"))):
        column = f.to_json(f.struct(column))
    return column.alias(name)


def _line(row: object) -> str:
    return ", ".join(str(value) for value in row) if isinstance(row, tuple) else str(row)
