"""One update on Spark: read, transform, write, commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.spark.loading.discarded_files import DiscardFilter
from freshline.spark.loading.frames import (
    NONE_LATE,
    ObservedRecords,
    base_rows,
    derived_rows,
    is_one_pass,
    keeps_records,
    keeps_timestamp,
    late_expression,
    read_files,
    read_parquet,
    source_rows,
)
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.spark.loading.prepared_frames import PreparedFrames
from freshline.spark.loading.shedding import kept_records, rows_there
from freshline.spark.loading.sink import Sink, count_late
from freshline.spark.loading.slices import dealt, outliers_of, slice_column
from freshline.spark.loading.whole_table import WholeInput, WholeTables
from freshline.storage.delta.extent import Extent
from freshline.storage.delta.files import ConsumedFile, LiveFile
from freshline.storage.delta.last_values import LastValues
from freshline.storage.delta.next_row import next_row
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.statistics import read_footers
from freshline.storage.delta.stored_table import StoredTable
from freshline.storage.delta.window_counts import rows_between


class Updater:
    """Runs the loads of a warehouse. Several tracks use it at once, never two for one table."""

    def __init__(
        self,
        warehouse: Warehouse,
        tables: Mapping[str, StoredTable],
        schemas: Mapping[str, StructType],
        landing: Mapping[str, Path],
        last_values: Mapping[str, LastValues] | None = None,
        sources: Mapping[str, ReadTable] | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._tables = tables
        self._readable = tables if sources is None else sources  # includes tables that other nodes write
        self._schemas = schemas
        self._landing = landing  # by feed: the folder of its files
        self._leaving_out = DiscardFilter(last_values or {})
        self._keeps_timestamp = {
            table.name: keeps_timestamp(table, warehouse.feeds[table.feed])
            for table in warehouse.stored.values()
            if table.feed is not None
        }
        self._keeps_records: dict[str, bool] = {}  # of updated base tables
        self._slices = {
            table.name: slice_column(table, schemas[table.name]) for table in warehouse.stored.values()
        }
        self._sink = Sink(schemas, {table.name: outliers_of(table) for table in warehouse.stored.values()})
        self._prepared = PreparedFrames()
        self._whole = WholeTables(warehouse, self._readable, schemas, self._prepared)

    def run(self, session: SparkSession, load: Load) -> LoadResult:
        """Loads (F, NF] into a table. All of it becomes visible with the commit."""
        table = self._warehouse.stored[load.table]
        feed = table.feed
        if feed is None:
            run = self._run_whole if table.is_whole else self._run_appended
            return run(session, load)
        facts = [file.facts for file in load.files]  # read once: a file may be overwritten meanwhile

        def work(files: list[FileFacts], consumed: tuple[ConsumedFile, ...]) -> LoadResult:
            if not files:
                return self._advance(load, load.to, consumed)
            return self._run_base(session, load, files, consumed)

        return self._leaving_out.commit(load, facts, self._tables[load.table], self._landing[feed], work)

    def _run_base(
        self,
        session: SparkSession,
        load: Load,
        files: Sequence[FileFacts],
        consumed: tuple[ConsumedFile, ...],
    ) -> LoadResult:
        table = self._warehouse.stored[load.table]
        assert table.feed is not None
        frame, watched = self._base(session, table, load, files, self._landing[table.feed])

        def expected() -> Extent | None:
            return self._expected(table, files, watched)

        source_bytes = sum(file.consumed.size for file in files)
        sheds = self._warehouse.feeds[table.feed].shed is not None
        records = sum(file.records for file in files) if sheds else None
        return self._commit(frame, load, load.to, source_bytes, consumed, expected, records)

    def _run_whole(self, session: SparkSession, load: Load) -> LoadResult:
        table = self._warehouse.stored[load.table]
        to = self._jumped(table, load)
        found = self._whole.input_of(table)
        if not load.is_first and self._whole.is_unchanged(table, found, load.after, to):
            result = self._advance(load, to, details={"read": dict(found.versions)})
        else:
            frames = self._whole.frames(session, found, to)
            rows = dealt(derived_rows(session, table, frames, None, to), self._slices[table.name])
            result = self._commit(rows, load, to, found.bytes, whole=found)
        self._whole.committed(table, found)
        return result

    def _run_appended(self, session: SparkSession, load: Load) -> LoadResult:
        table = self._warehouse.stored[load.table]
        after = None if load.is_first else load.after
        sources = self._sources(table, after, load.to)
        freshness = self._jumped(table, load)
        if not any(sources.values()):
            return self._advance(load, freshness)
        source_bytes = sum(file.size for found in sources.values() for file in found)
        frame = self._derived(session, table, sources, after, load.to)
        return self._commit(frame, load, freshness, source_bytes)

    def _commit(
        self,
        frame: DataFrame,
        load: Load,
        freshness: int,
        source_bytes: int,
        consumed: tuple[ConsumedFile, ...] = (),
        expected: Callable[[], Extent | None] = lambda: None,
        records: int | None = None,
        whole: WholeInput | None = None,
    ) -> LoadResult:
        """Computes the rows with Spark and commits them; `expected` is called once they are written.

        `records` is the number of records read if not all may become rows: the commit then has both numbers.
        With `whole`, the rows computed from that input replace all others.
        """
        name = load.table
        stored = self._tables[name]
        folder = f"data/{stored.sequence + 1:08d}-{uuid4().hex[:8]}"
        result = self._sink.write(frame, name, stored, folder, source_bytes)
        written, details, rows_shed = result.files, _details(load), 0
        if whole is not None:
            details |= whole.details()
        if records is not None:
            if written is None:
                written = read_footers(stored.path, folder, stored.schema, stored.timestamp)
            rows_shed = details["rows_shed"] = records - sum(footer.rows for _, footer in written)
        version = stored.commit(
            folder,
            freshness,
            consumed,
            details,
            expected=expected(),
            written=written,
            whole=whole is not None,
        )
        added = tuple(file for file in stored.files if file.path.startswith(f"{folder}/"))
        self._sink.learn(name, stored, result, source_bytes, added)
        rows_late = result.rows_late
        if rows_late is None:
            rows_late = count_late(stored, added, load.after) if load.files else 0
        return LoadResult(
            freshness=freshness,
            rows=sum(file.rows for file in added),
            rows_late=rows_late,
            version=version,
            consumed=consumed,
            rows_shed=rows_shed,
            files=added,
            rows_in=self._rows_in(load) if whole is None else whole.rows,
        )

    def _rows_in(self, load: Load) -> int | None:
        step = self._warehouse.steps.get(load.table)
        if step is None:
            return None
        if step.feed is not None:
            return sum(file.facts.records for file in load.files)
        after = None if load.is_first else load.after - step.lookback_us
        return sum(rows_between(self._readable[name], after, load.to) for name in step.sources)

    def _advance(
        self,
        load: Load,
        freshness: int,
        consumed: tuple[ConsumedFile, ...] = (),
        details: Mapping[str, Any] | None = None,
    ) -> LoadResult:
        """Commits a new freshness without rows, which needs no Spark job."""
        said = {**_details(load), **(details or {})}
        version = self._tables[load.table].commit(None, freshness, consumed, said)
        return LoadResult(freshness, 0, 0, version, consumed, computed=False)

    def check(self, session: SparkSession, load: Load, landing: Path) -> None:
        """Does the work of an update with a load's files in that folder, without the commit.

        It raises the error that the update would raise, and leaves no files.
        """
        table = self._warehouse.stored[load.table]
        assert table.feed is not None
        files, _ = self._leaving_out.kept(load.table, [file.facts for file in load.files])
        if not files:
            return
        frame, watched = self._base(session, table, load, files, landing)
        source_bytes = sum(file.consumed.size for file in files)
        self._check(table, frame, source_bytes, lambda: self._expected(table, files, watched))

    def check_control(self, session: SparkSession, name: str, path: Path) -> None:
        """Does the same with another file of the table's feed, or a folder of files."""
        table = self._warehouse.stored[name]
        assert table.feed is not None
        assert table.timestamp is not None
        feed = self._warehouse.feeds[table.feed]
        late = late_expression(table.timestamp, 0, None)
        records = read_files(session, feed, [str(path)])
        if feed.shed is not None:
            records = kept_records(records, feed)
        rows = dealt(base_rows(session, table, feed, records, late), self._slices[name])
        self._check(table, rows, _bytes_below(path), lambda: None)

    def _check(
        self,
        table: StoredDefinition,
        frame: DataFrame,
        source_bytes: int,
        expected: Callable[[], Extent | None],
    ) -> None:
        stored = self._tables[table.name]
        folder = f"data/check-{uuid4().hex}"
        try:
            result = self._sink.try_out(frame, table.name, stored, folder, source_bytes)
            stored.check(folder, expected(), result.files)
        finally:
            shutil.rmtree(stored.path / folder, ignore_errors=True)

    def _base(
        self,
        session: SparkSession,
        table: StoredDefinition,
        load: Load,
        files: Sequence[FileFacts],
        landing: Path,
    ) -> tuple[DataFrame, ObservedRecords | None]:
        """The rows of a load's files in that folder, and the observation of the records read."""
        assert table.feed is not None
        assert table.timestamp is not None
        feed = self._warehouse.feeds[table.feed]
        assert feed.landing.timestamp is not None
        keeps = feed.shed is None and self._keeps(session, table)
        known = [file.oldest for file in files if file.oldest is not None]
        oldest = min(known) if self._keeps_timestamp[table.name] and len(known) == len(files) else None
        late = late_expression(table.timestamp, load.after, oldest)
        paths = [str(landing / file.consumed.name) for file in files]
        slices = self._slices[table.name]

        def read() -> DataFrame:
            return read_files(session, feed, paths)

        if keeps and late == NONE_LATE and is_one_pass(table):
            name = ("rows", table.name)
            rows = self._prepared.of(
                session, name, paths, lambda: dealt(base_rows(session, table, feed, read(), late), slices)
            )
            return rows, None
        records = self._prepared.of(session, ("records", table.feed), paths, read)
        watched = None if keeps else ObservedRecords(records, feed.landing.timestamp)
        records = watched.records if watched else records
        if feed.shed is not None:
            records = self._shed(session, table, feed, records, paths, files)
        return dealt(base_rows(session, table, feed, records, late), slices), watched

    def _shed(
        self,
        session: SparkSession,
        table: StoredDefinition,
        feed: Feed,
        records: DataFrame,
        paths: Sequence[str],
        files: Sequence[FileFacts],
    ) -> DataFrame:
        oldest = [file.oldest for file in files if file.oldest is not None]
        newest = [file.newest for file in files if file.newest is not None]
        assert len(oldest) == len(newest) == len(files), "a file with unknown timestamps"
        stored, schema = self._tables[table.name], self._schemas[table.name]

        def read(own: Sequence[LiveFile]) -> DataFrame:
            return read_parquet(session, [str(stored.path / file.path) for file in own], schema)

        there = rows_there(stored, feed, min(oldest), max(newest), read)
        return kept_records(records, feed, paths, there)

    def _keeps(self, session: SparkSession, table: StoredDefinition) -> bool:
        assert table.feed is not None
        if table.name not in self._keeps_records:
            feed = self._warehouse.feeds[table.feed]
            self._keeps_records[table.name] = keeps_records(session, table, feed)
        return self._keeps_records[table.name]

    def _expected(
        self, table: StoredDefinition, files: Sequence[FileFacts], watched: ObservedRecords | None
    ) -> Extent | None:
        """The extent that must have been written: that of the records found in the files.

        If a `select` leaves records out, the records that Spark read are compared here instead.
        """
        newest = [file.newest for file in files if file.newest is not None]
        oldest = [file.oldest for file in files if file.oldest is not None]
        known = len(newest) == len(oldest) == len(files)
        records = sum(file.records for file in files)
        found = Extent(records, min(oldest), max(newest)) if known else Extent(records, None, None)
        if watched is not None:
            found.check(watched.extent())
            return None
        return found if self._keeps_timestamp[table.name] else replace(found, oldest=None, newest=None)

    def _sources(self, table: StoredDefinition, after: int | None, to: int) -> dict[str, list[LiveFile]]:
        """The files of each source that may have rows of a range."""
        since = None if after is None else after - table.lookback_us
        return {name: self._readable[name].files_with(since, to) for name in table.sources}

    def _derived(
        self,
        session: SparkSession,
        table: StoredDefinition,
        sources: Mapping[str, Sequence[LiveFile]],
        after: int | None,
        to: int,
    ) -> DataFrame:
        since = None if after is None else after - table.lookback_us
        frames = {name: self._source(session, name, files, since, to) for name, files in sources.items()}
        return dealt(derived_rows(session, table, frames, after, to), self._slices[table.name])

    def _source(
        self, session: SparkSession, name: str, files: Sequence[LiveFile], after: int | None, to: int
    ) -> DataFrame:
        """A source's rows of a range, read from these files, without late rows."""
        timestamp = self._warehouse.stored[name].timestamp
        assert timestamp is not None
        paths = [str(self._readable[name].path / file.path) for file in files]
        schema = self._schemas[name]
        rows = self._prepared.of(
            session, ("table", name), paths, lambda: read_parquet(session, paths, schema)
        )
        return source_rows(rows, schema, timestamp, after, to)

    def _jumped(self, table: StoredDefinition, load: Load) -> int:
        """The freshness to commit: NF, or more if no source has a row after it.

        Rows that came to the sources after the job's start are newer than their freshness then, or late. So
        the table has the same rows up to NF and up to the returned freshness.
        """
        jump = load.jump
        if jump is None:
            return load.to
        next_rows = []
        # The update that loads the rows of an unreadable file reports the error.
        try:
            for name in table.sources:
                if self._warehouse.stored[name].timestamp is None:
                    continue
                row = next_row(self._readable[name], load.to, jump.to, jump.near)
                if row is not None:
                    next_rows.append(row)
        except (OSError, pa.ArrowException):
            return load.to
        return jump.reached(min(next_rows, default=None))


def _details(load: Load) -> dict[str, Any]:
    details: dict[str, Any] = {"table": load.table, "job": load.number}
    if load.came_at is not None:  # other nodes may use it
        details["came_at"] = load.came_at
    if load.recovery:  # what other nodes make of it gives way too
        details["recovery"] = True
    return details


def _bytes_below(path: Path) -> int:
    """The size of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
