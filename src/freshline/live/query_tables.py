"""Tables that answers are kept in: one append for each answer, where a query says `into`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.spark.iteration import Outcome
from freshline.storage.layout import Layout

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = pa.timestamp("us", "UTC")
# What an answer's rows have beside its own columns.
_WINDOW = [pa.field("_from", _INSTANT), pa.field("_to", _INSTANT), pa.field("_keep", pa.float64())]


class QueryTables:
    """Delta tables in the storage, made with their first answer. A query is on one track at a time."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def append(self, name: str, schema: StructType, outcome: Outcome, released_us: int) -> None:
        """An answer's rows, each with the window that it is of, and the share of it that was read."""
        columns = to_arrow_schema(schema)
        start, end = (_EPOCH + timedelta(microseconds=at) for at in outcome.window)
        of_all = {"_from": start, "_to": end, "_keep": float(outcome.keep)}
        rows = [{**row, **of_all} for row in outcome.answer.rows]
        table = pa.Table.from_pylist(rows, pa.schema([*columns, *_WINDOW]))
        told = CommitProperties(app_transactions=[Transaction("freshline", released_us)])
        write_deltalake(self._layout.table(name), table, mode="append", commit_properties=told)
