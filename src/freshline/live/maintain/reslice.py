"""Rewrites all files of a base table with its rows in new slices, or in none."""

from __future__ import annotations

from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from freshline.definitions.computation import Computation
from freshline.definitions.sections.stored import StoredDefinition
from freshline.spark.loading.frames import read_parquet
from freshline.spark.loading.sink import write_by_executors
from freshline.spark.loading.slices import dealt, outliers_of, slice_column
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import SLICE_COLUMN
from freshline.storage.delta.computations import told
from freshline.storage.delta.extent import Extent
from freshline.storage.delta.stored_table import StoredTable


def deal_anew(
    session: SparkSession, stored: StoredTable, table: StoredDefinition, columns: StructType, now: Computation
) -> None:
    """Replaces all files in one commit, which also records the computation of the rows.

    Columns that the table lacks are null in its rows.
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
