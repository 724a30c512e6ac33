"""The inputs of a table that is computed whole: all rows of its sources up to its new freshness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.spark.loading.frames import read_parquet, whole_source_rows
from freshline.spark.loading.prepared_frames import PreparedFrames
from freshline.sql.clock import sql_at
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable, files_with


@dataclass(frozen=True, slots=True)
class WholeInput:
    """The versions of a table's sources that one update reads, and their files with rows."""

    versions: Mapping[str, int]
    files: Mapping[str, tuple[LiveFile, ...]]

    @property
    def rows(self) -> int:
        return sum(file.rows for files in self.files.values() for file in files)

    @property
    def bytes(self) -> int:
        return sum(file.size for files in self.files.values() for file in files)

    def details(self) -> dict[str, Any]:
        """What the commit says: the versions read, and that all rows may have changed."""
        return {"read": dict(self.versions), "changed": [[None, None]]}


class WholeTables:
    """Reads the sources of tables that are computed whole. Several tracks use it at once."""

    def __init__(
        self,
        warehouse: Warehouse,
        readable: Mapping[str, ReadTable],
        schemas: Mapping[str, StructType],
        prepared: PreparedFrames,
    ) -> None:
        self._warehouse = warehouse
        self._prepared = prepared
        self._readable = readable
        self._schemas = schemas
        self._read: dict[str, WholeInput] = {}  # by table: the input of its last commit in this run

    def input_of(self, table: StoredDefinition) -> WholeInput:
        """The newest versions of its sources. Later commits do not change what they hold."""
        snapshots = {name: self._readable[name].snapshot for name in table.sources}
        return WholeInput(
            {name: snapshot.version for name, snapshot in snapshots.items()},
            {name: tuple(file for file in each.files if file.rows) for name, each in snapshots.items()},
        )

    def is_unchanged(self, table: StoredDefinition, found: WholeInput, after: int, to: int) -> bool:
        """Whether the table would have the same rows as after its last commit."""
        before = self._read.get(table.name)
        if before is None or table.sql is None or sql_at(table.sql, 0) != table.sql:
            return False
        for name, files in found.files.items():
            source = self._warehouse.stored[name]
            if source.is_whole and before.files[name] != files:
                return False
            if source.timestamp is not None and files_with(files, after, to):
                return False
        return True

    def committed(self, table: StoredDefinition, found: WholeInput) -> None:
        self._read[table.name] = found

    def frames(self, session: SparkSession, found: WholeInput, to: int) -> dict[str, DataFrame]:
        """The rows of its sources up to an instant."""
        frames = {}
        for name, files in found.files.items():
            schema = self._schemas[name]
            paths = [str(self._readable[name].path / file.path) for file in files]
            rows = self._prepared.of(
                session, ("table", name), paths, partial(read_parquet, session, paths, schema)
            )
            frames[name] = whole_source_rows(rows, schema, self._warehouse.stored[name].timestamp, to)
        return frames
