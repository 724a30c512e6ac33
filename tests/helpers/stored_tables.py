"""Small tables with a timestamp, a number and a text, written as a Spark job would write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("text", pa.string())])


def opened(path: Path, schema: pa.Schema = SCHEMA, history_us: int = 0) -> StoredTable:
    """The table at a path, made if it is not there; without a history its log may be cleaned at once."""
    return StoredTable.open_or_create(path, "flows", schema, "ts", history_us=history_us)


def rows(instants: Sequence[int | None]) -> pa.Table:
    """Rows with these timestamps in µs."""
    columns = [list(instants), [value or 0 for value in instants], [f"row {value}" for value in instants]]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def job(table: StoredTable, name: str, *parts: Sequence[int | None]) -> str:
    """The folder that a job wrote, one file for each list of timestamps."""
    folder = table.path / "data" / name
    folder.mkdir(parents=True)
    for number, instants in enumerate(parts):
        pq.write_table(rows(instants), folder / f"part-{number}.parquet")
    return f"data/{name}"


def file(name: str) -> ConsumedFile:
    """A consumed data file."""
    return ConsumedFile(name, 10, 1_700_000_000_000_000_001, f"digest of {name}")


def update(table: StoredTable, number: int) -> int:
    """Commits one row with that timestamp, which has consumed one file."""
    return table.commit(
        job(table, f"{number:06d}", [number]), number, [file(f"{number}.csv")], {"job": number}
    )


def instants(path: Path) -> list[int]:
    """All timestamps in the table, as a plain reader sees them, sorted."""
    column = DeltaTable(path).to_pyarrow_table(columns=["ts"])["ts"]
    return sorted(column.cast(pa.int64()).to_pylist())
