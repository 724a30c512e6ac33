"""What one version of a table says: freshness, sequence and live files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import Transaction

from freshline.storage.delta.files import LiveFile

# Versions of application transactions survive the log's clean-up, unlike other information of a commit.
_SEQUENCE: Final = "freshline"
_FRESHNESS: Final = "freshline.freshness"
_COMPUTATION: Final = "freshline.computation"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table as of a version. Replaced as a whole by the next one, so that any thread may read it."""

    version: int
    sequence: int
    freshness: int | None
    files: tuple[LiveFile, ...]
    computation: int | None = None  # the number of what its rows are computed by, where that was recorded

    @property
    def versions(self) -> dict[str, int]:
        """What is known by the versions of application transactions."""
        versions = {_SEQUENCE: self.sequence, _FRESHNESS: self.freshness, _COMPUTATION: self.computation}
        return {name: version for name, version in versions.items() if version is not None}

    def told(self, name: str, version: int) -> Snapshot:
        """What it is once a commit says that; other applications' versions say nothing."""
        if name == _SEQUENCE:
            return replace(self, sequence=version)
        if name == _FRESHNESS:
            return replace(self, freshness=version)
        return replace(self, computation=version) if name == _COMPUTATION else self

    def transactions(self) -> list[Transaction]:
        """What makes a commit carry these versions, and fail against another writer's."""
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
