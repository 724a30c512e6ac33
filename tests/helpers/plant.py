"""A feed of readings with two tables: one has all of them, one does without files that change little."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from freshline.definitions.load import loads
from freshline.definitions.sections.discard import Discard
from freshline.landing.key_values import KeyValues, NewestValue, digest
from freshline.landing.record_reader import RecordReader
from freshline.live.tables.discard_control import DiscardControl
from freshline.live.tables.file_to_load import FileToLoad
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.spark.loading.updater import Updater
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01
PROJECT = """\
name: plant
pools: {updates: {tracks: 1}}
feeds:
  readings: {path: readings, format: csv, timestamp: ts, period: 1s,
             schema: "ts timestamp, sensor string, v double"}
tables:
  all: {feed: readings}
  few: {feed: readings}
"""
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("sensor", pa.string()), ("v", pa.float64()), ("_late", pa.bool_())]
)


def values(at: int, **of: float | None) -> KeyValues:
    return KeyValues({digest(key): NewestValue(at, value) for key, value in of.items()})


@dataclass(frozen=True)
class File:
    rows: tuple[tuple[int, str, float], ...]  # second, sensor, value
    mwde: float
    again: bool = False  # its rows come once more, under another name


class ByArrow(Updater):
    """Reads files with Arrow where others use Spark; the rest is an update as any other."""

    computed: list[str]
    fails = False

    def _run_base(self, session, load: Load, files: Sequence[FileFacts], consumed) -> LoadResult:
        stored = self._tables[load.table]
        folder = f"data/{stored.sequence:08d}"
        (stored.path / folder).mkdir(parents=True)
        options = pacsv.ConvertOptions(null_values=[])
        paths = [self._landing["readings"] / file.consumed.name for file in files]
        parts = [pacsv.read_csv(path, convert_options=options) for path in paths]
        self.computed += [file.consumed.name for file in files]
        rows = pa.concat_tables(parts).append_column("_late", pa.array([False] * sum(map(len, parts))))
        pq.write_table(rows.cast(SCHEMA), stored.path / folder / "part-0.parquet")
        version = stored.commit(folder, load.to, consumed, {})
        if self.fails:
            raise OSError("after the commit")
        return LoadResult(load.to, len(rows), 0, version, consumed)


class Plant:
    """Two tables of one feed: one has all rows, one does without files that change little."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "readings").mkdir()
        warehouse = loads(PROJECT)
        few = replace(warehouse.tables["few"], discard=Discard("sensor", "v"))
        self.warehouse = replace(warehouse, tables={**warehouse.tables, "few": few})
        self.files: list[FileToLoad] = []
        self.computed: list[str] = []
        self.open()

    def open(self) -> None:
        """A run begins."""
        self.tables = {
            name: StoredTable.open_or_create(self.folder / name, name, SCHEMA, "ts")
            for name in ("all", "few")
        }
        self.discarding = DiscardControl(self.warehouse)
        self.discarding.recall(self.tables)
        schemas = {name: from_arrow_schema(SCHEMA) for name in self.tables}
        landing = {"readings": self.folder / "readings"}
        self.updater = ByArrow(self.warehouse, self.tables, schemas, landing, self.discarding.last_values)
        self.updater.computed = self.computed

    def find(self, number: int, file: File) -> FileToLoad:
        path = self.folder / "readings" / f"{number}.csv"
        lines = [f"{(START + second * SECOND) // SECOND},{sensor},{v!r}" for second, sensor, v in file.rows]
        stamped = [line.replace(line.split(",")[0], _iso(int(line.split(",")[0])), 1) for line in lines]
        path.write_text("\n".join(["ts,sensor,v", *stamped]) + "\n")
        reader = RecordReader(self.warehouse.feeds["readings"].landing)
        self.discarding.limit("updates", file.mwde)
        columns = self.discarding.columns("readings")
        offers = self.discarding.offers(
            {table: reader.compared(path, *each) for table, each in columns.items()}, 0
        )
        newest = START + max(second for second, _, _ in file.rows) * SECOND
        there = path.stat()
        consumed = ConsumedFile(path.name, there.st_size, there.st_mtime_ns, path.read_text())
        return FileToLoad(newest, path.name, FileFacts(consumed, len(file.rows), None, None, offers))

    def load(self, table: str, files: Sequence[FileToLoad]) -> LoadResult:
        freshness = self.tables[table].freshness or 0
        ordered = tuple(sorted(files))
        load = Load(table, 1, freshness, max(freshness, ordered[-1].timestamp), ordered)
        return self.updater.run(None, load)  # type: ignore[arg-type]

    def rows(self, table: str) -> list[tuple[int, str, float]]:
        stored = self.tables[table]
        parts = [pq.read_table(stored.path / file.path) for file in stored.files]
        found = [row for part in parts for row in part.to_pylist()]
        return sorted(
            (round(row["ts"].timestamp()) - START // SECOND, row["sensor"], row["v"]) for row in found
        )


def _iso(second: int) -> str:
    return pa.scalar(second, pa.timestamp("s", "UTC")).as_py().strftime("%Y-%m-%dT%H:%M:%SZ")
