"""One version of a table: freshness, sequence and live files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import Transaction

from freshline.storage.delta.files import LiveFile

# Versions of application transactions survive the log's clean-up; other information of a commit does not.
_SEQUENCE: Final = "freshline"
_FRESHNESS: Final = "freshline.freshness"
_COMPUTATION: Final = "freshline.computation"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table as of a version. The next one replaces it as a whole, so any thread may read it."""

    version: int
    sequence: int
    freshness: int | None
    files: tuple[LiveFile, ...]
    computation: int | None = None  # the number of the computation of its rows, if recorded

    @property
    def versions(self) -> dict[str, int]:
        """The properties that commits carry as versions of application transactions."""
        versions = {_SEQUENCE: self.sequence, _FRESHNESS: self.freshness, _COMPUTATION: self.computation}
        return {name: version for name, version in versions.items() if version is not None}

    def told(self, name: str, version: int) -> Snapshot:
        """The snapshot after a commit with that transaction version; other applications' are ignored."""
        if name == _SEQUENCE:
            return replace(self, sequence=version)
        if name == _FRESHNESS:
            return replace(self, freshness=version)
        return replace(self, computation=version) if name == _COMPUTATION else self

    def transactions(self) -> list[Transaction]:
        """The transactions of a commit: they carry these versions and conflict with another writer's."""
        return [Transaction(name, version) for name, version in self.versions.items()]


def read_snapshot(path: Path, timestamp: str, table: DeltaTable) -> Snapshot:
    """The snapshot that delta-rs has loaded, every live file listed."""
    return Snapshot(
        table.version(),
        table.transaction_version(_SEQUENCE) or 0,
        table.transaction_version(_FRESHNESS),
        _live_files(path, timestamp, table),
        table.transaction_version(_COMPUTATION),
    )


def _live_files(path: Path, timestamp: str, table: DeltaTable) -> tuple[LiveFile, ...]:
    adds = pa.table(table.get_add_actions(flatten=True))
    paths = adds["path"].to_pylist()
    columns = zip(
        paths,
        adds["num_records"].to_pylist(),
        adds["size_bytes"].to_pylist(),
        _instants(adds, f"min.{timestamp}"),
        _instants(adds, f"max.{timestamp}"),
        strict=True,
    )
    files = [
        # A file of another writer may come without statistics.
        LiveFile(file, _count(path / file) if rows is None else rows, size, oldest, newest)
        for file, rows, size, oldest, newest in columns
    ]
    return tuple(sorted(files, key=lambda file: (file.oldest or 0, file.path)))


def _instants(adds: pa.Table, column: str) -> list[Any]:
    if column not in adds.column_names or pa.types.is_null(adds[column].type):
        return [None] * adds.num_rows
    instants: list[Any] = adds[column].cast(pa.int64()).to_pylist()
    return instants


def _count(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)
