"""One update on Spark: read, transform, write, commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.columns import LATE_COLUMN
from freshline.definitions.warehouse import Table, Warehouse
from freshline.kernel.job import Job
from freshline.spark.frames import (
    Watched,
    base_rows,
    between,
    derived_rows,
    keeps_records,
    keeps_timestamp,
    late_expression,
    quoted,
    read_files,
    read_parquet,
)
from freshline.storage.delta import Consumed, LiveFile, NullTimestamps, StoredTable
from freshline.storage.extent import Extent


@dataclass(frozen=True, slots=True)
class FileToLoad:
    """A data file on its way: what its commit will note, and what is known of its records."""

    consumed: Consumed
    records: int  # how many it has
    oldest: int | None  # their timestamps, where they are known
    newest: int | None


@dataclass(frozen=True, slots=True)
class Update:
    """What an update did."""

    freshness: int
    rows: int
    rows_late: int
    version: int  # of the Delta table
    consumed: tuple[Consumed, ...]


class Updater:
    """Runs the jobs of a warehouse. Several tracks use it at once, never two for one table."""

    def __init__(
        self,
        warehouse: Warehouse,
        tables: Mapping[str, StoredTable],
        schemas: Mapping[str, StructType],
        landing: Mapping[str, Path],
        files: Callable[[str, str], FileToLoad],
    ) -> None:
        self._warehouse = warehouse
        self._tables = tables
        self._schemas = schemas
        self._landing = landing  # by feed: where its files are
        self._files = files  # (feed, name) -> what is known of the file
        self._keeps_timestamp = {
            table.name: keeps_timestamp(table, warehouse.feeds[table.feed])
            for table in warehouse.tables.values()
            if table.feed is not None
        }
        self._keeps_records: dict[str, bool] = {}  # of base tables that have been updated

    def run(self, session: SparkSession, job: Job) -> Update:
        """Loads (F, NF] into the job's table. Nothing is visible before the commit, and all of it after."""
        table = self._warehouse.tables[job.task.name]
        stored = self._tables[table.name]
        after = None if job.task.empty else job.loaded_from
        consumed: tuple[Consumed, ...] = ()
        found = watched = None
        if table.feed is not None:
            files = self._known(table.feed, job)
            consumed = tuple(file.consumed for file in files)
            records, found = self._records(session, table, job), _found(files)
            if not self._keeps(session, table):
                watched = self._watched(table, records)
                records = watched.records
            frame = self._base(session, table, job, files, records)
        else:
            frame = self._derived(session, table, after, job.loaded_to)
        folder = f"data/{stored.sequence + 1:08d}-{uuid4().hex[:8]}"
        frame.write.parquet(str(stored.path / folder))
        if found is not None and watched is not None:
            found.check(watched.extent())
            found = None
        elif found is not None and not self._keeps_timestamp[table.name]:
            found = replace(found, oldest=None, newest=None)
        details = {"table": table.name, "job": job.number}
        # Where every record becomes a row, the footers of what was written tell whether it is what was found.
        version = stored.commit(folder, job.loaded_to, consumed, details, expected=found)
        added = tuple(file for file in stored.files if file.path.startswith(f"{folder}/"))
        return Update(
            freshness=job.loaded_to,
            rows=sum(file.rows for file in added),
            rows_late=self._count_late(stored, added, after) if table.feed is not None else 0,
            version=version,
            consumed=consumed,
        )

    def check(self, session: SparkSession, job: Job) -> None:
        """Reads a job's data files and keeps nothing; raises what would be wrong with them in an update."""
        table = self._warehouse.tables[job.task.name]
        assert table.feed is not None
        assert table.timestamp is not None
        files = self._known(table.feed, job)
        watched = self._watched(table, self._records(session, table, job))
        frame = self._base(session, table, job, files, watched.records)
        frame.write.format("noop").mode("overwrite").save()
        _found(files).check(watched.extent())
        nulls = frame.where(frame[quoted(table.timestamp)].isNull()).count()
        if nulls:
            raise NullTimestamps(nulls)

    def _known(self, feed: str, job: Job) -> list[FileToLoad]:
        return [self._files(feed, str(file.name)) for file in job.files]

    def _keeps(self, session: SparkSession, table: Table) -> bool:
        assert table.feed is not None
        if table.name not in self._keeps_records:
            feed = self._warehouse.feeds[table.feed]
            self._keeps_records[table.name] = keeps_records(session, table, feed)
        return self._keeps_records[table.name]

    def _records(self, session: SparkSession, table: Table, job: Job) -> DataFrame:
        assert table.feed is not None
        paths = [str(self._landing[table.feed] / str(file.name)) for file in job.files]
        return read_files(session, self._warehouse.feeds[table.feed], paths)

    def _watched(self, table: Table, records: DataFrame) -> Watched:
        assert table.feed is not None
        timestamp = self._warehouse.feeds[table.feed].landing.timestamp
        assert timestamp is not None
        return Watched(records, timestamp)

    def _base(
        self, session: SparkSession, table: Table, job: Job, files: Sequence[FileToLoad], records: DataFrame
    ) -> DataFrame:
        assert table.feed is not None
        assert table.timestamp is not None
        feed = self._warehouse.feeds[table.feed]
        known = [file.oldest for file in files if file.oldest is not None]
        oldest = min(known) if self._keeps_timestamp[table.name] and len(known) == len(files) else None
        late = late_expression(table.timestamp, job.loaded_from, oldest)
        return base_rows(session, table, feed, records, late)

    def _derived(self, session: SparkSession, table: Table, after: int | None, to: int) -> DataFrame:
        sources = {
            name: self._source(session, name, None if after is None else after - table.lookback_us, to)
            for name in table.sources
        }
        return derived_rows(session, table, sources, after, to)

    def _source(self, session: SparkSession, name: str, after: int | None, to: int) -> DataFrame:
        """A source's rows of a range that are not late: of the files that may have any."""
        table, schema = self._warehouse.tables[name], self._schemas[name]
        assert table.timestamp is not None
        paths = self._tables[name].files_between(-1 if after is None else after, to)
        frame = between(read_parquet(session, paths, schema), table.timestamp, after, to)
        return frame.where(f"NOT {LATE_COLUMN}").drop(LATE_COLUMN) if LATE_COLUMN in schema.names else frame

    def _count_late(self, stored: StoredTable, files: tuple[LiveFile, ...], after: int | None) -> int:
        """How many of the rows just loaded are late; files that reach back no further than F have none."""
        if after is None:
            return 0
        late = 0
        for file in files:
            if file.oldest is None or file.oldest <= after:
                # The commit stands: an error here must not make the job a failed one, to be run again.
                with suppress(OSError, pa.ArrowException):
                    column = pq.read_table(stored.path / file.path, columns=[LATE_COLUMN])[LATE_COLUMN]
                    late += pc.sum(column).as_py() or 0
        return late


def _found(files: Sequence[FileToLoad]) -> Extent:
    """What was found in the files before."""
    records = sum(file.records for file in files)
    oldest = [file.oldest for file in files if file.oldest is not None]
    newest = [file.newest for file in files if file.newest is not None]
    if len(oldest) < len(files) or len(newest) < len(files):
        return Extent(records, None, None)
    return Extent(records, min(oldest), max(newest))
