"""A warehouse's table: a Delta table to which one writer adds whole updates, each exactly once.

An update's Parquet files are written into a folder of their own; `commit` makes them part of the table,
moves its freshness and notes which data files were consumed, all in one step of the Delta log.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import (
    CommitProperties,
)

from freshline.base.disk import full_disk
from freshline.base.duration import DAY, HOUR, SECOND
from freshline.base.errors import InputError
from freshline.definitions.computation import Computation
from freshline.storage.delta import compaction, computations, log
from freshline.storage.delta.commits import NO_HOOKS, CommitOvertaken, Commits, TableTaken
from freshline.storage.delta.extent import Extent, extent_of
from freshline.storage.delta.files import ConsumedFile, LiveFile
from freshline.storage.delta.log_window import LogWindow
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.schema import OtherColumns, check_can_have, differences
from freshline.storage.delta.snapshot import Snapshot
from freshline.storage.delta.statistics import Footer, UnreadableParquet, read_footers
from freshline.storage.delta.vacuum import vacuum

# Each commit since the last load of the snapshot makes the next about 0.3 ms slower. A checkpoint with its
# load takes 20 ms. 25 is the best of 10, 25, 50, 100, 200 (7 ms a commit on average; 35 ms with 200).
COMMITS_WITHOUT_CHECKPOINT: Final = 25
# The most commits after a checkpoint that a reader of an old version has to read.
COMMITS_BETWEEN_CHECKPOINTS: Final = 250
# The least time that replaced files stay, for queries and jobs that read them.
_FILES_KEPT_AT_LEAST_US: Final = HOUR
# How often a commit that replaces all files is tried while another writer compacts the table.
_ATTEMPTS_TO_REPLACE: Final = 15
_logger = logging.getLogger(__name__)

Written = Sequence[tuple[str, Footer]]  # a job's files that have rows, by path in the table


class NullTimestamps(Exception):  # noqa: N818  (it is what was found)
    """An update has rows without a timestamp."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} rows have no timestamp")


class StoredTable(ReadTable):
    """A Delta table, opened by its only writer or by readers."""

    def __init__(
        self, path: Path, timestamp: str, table: DeltaTable, window: LogWindow, history_us: int = DAY
    ) -> None:
        self.path = path
        self.history_us = history_us
        self.timestamp = timestamp
        self.id = str(table.metadata().id)
        self.schema: pa.Schema = pa.schema(table.schema().to_arrow())
        self._lock = threading.RLock()
        self._cleaning = threading.Lock()
        self._commits = Commits(path, timestamp, table, window)
        self._checkpointed = log.last_checkpoint(path) or 0

    @classmethod
    def open_or_create(
        cls,
        path: Path,
        name: str,
        schema: pa.Schema,
        timestamp: str,
        computation: Computation | None = None,
        history_us: int = DAY,
    ) -> StoredTable:
        """Opens the table at a path or makes it; a table with another schema is rejected.

        Its versions can be read back over `history_us`.
        """
        assert not timestamp or timestamp in schema.names, f"{name} has no column {timestamp}"
        configuration = _configuration(history_us)
        if log.last_checkpoint(path) is None and not DeltaTable.is_deltatable(str(path)):
            made = CommitProperties()
            if computation is not None:
                number = computations.add(path, computation, "made", None)
                made.app_transactions = Snapshot(0, 0, None, (), number).transactions()
                made.custom_metadata = {log.KEY: computations.told(None, computation, "made")}
            DeltaTable.create(
                path, schema, "ignore", name=name, configuration=configuration, commit_properties=made
            )
        window = LogWindow(path)
        window.build()
        window.check_newest()
        table = DeltaTable(window.root)
        others = differences(table.schema(), DeltaSchema.from_arrow(schema))
        is_partitioned = bool(table.metadata().partition_columns)
        if others or is_partitioned:
            raise OtherColumns(path, name, others, is_partitioned)
        there = table.metadata().configuration
        if any(there.get(key) != value for key, value in configuration.items()):
            _configure(path, configuration)
            window.build()
            table = DeltaTable(window.root)
        return cls(path, timestamp, table, window, history_us)

    @classmethod
    def open(cls, path: Path, timestamp: str) -> StoredTable:
        """The table at a path, for readers."""
        try:
            present = log.commits(path)
            if present:
                log.check_newest(path, present[-1])
            return cls(path, timestamp, DeltaTable(path), LogWindow(path))
        except (TableNotFoundError, FileNotFoundError) as error:
            raise InputError(f"there is no table at {path}", "Let 'freshline run' make it first") from error

    @property
    def snapshot(self) -> Snapshot:
        return self._commits.snapshot

    @property
    def computation(self) -> Computation | None:
        """The computation of its rows; None if it was not recorded."""
        number = self._commits.snapshot.computation
        return None if number is None else computations.find(self.path, number)

    def record(self, computation: Computation, how: computations.How) -> None:
        """Records the computation of all rows from here on, also in the table's history."""
        with self._lock:
            change = computations.told(self.computation, computation, how)
            self._commits.transact((), (), self._computed_by(computation, how), change)

    def _computed_by(self, computation: Computation, how: computations.How) -> Snapshot:
        """The snapshot with that computation, which is written down before the commit that refers to it."""
        number = computations.add(self.path, computation, how, self._commits.snapshot.computation)
        return replace(self._commits.snapshot, computation=number)

    def commit(
        self,
        folder: str | None,
        freshness: int,
        consumed: Sequence[ConsumedFile],
        details: Mapping[str, Any],
        replacing: pa.Schema | None = None,
        computation: Computation | None = None,
        expected: Extent | None = None,
        written: Written | None = None,
        how: computations.How = "rebuilt",
        whole: bool = False,
    ) -> int:
        """Adds the Parquet files of the folder as the next update; returns the new version.

        `expected` describes the rows that must be there, `written` the files, if their writer knows them.
        `whole` makes them the table's only files. For a rebuild, `replacing` does so too, and sets this
        schema. `computation` and `how` record how the rows are computed.
        """
        if replacing is not None:
            self.check_can_have(replacing)
        schema = self.schema if replacing is None else replacing
        added = self._acceptable(folder, schema, expected, written, whole or replacing is not None)
        with self._lock:
            before = self._commits.snapshot
            if before.freshness is not None and freshness < before.freshness and replacing is None:
                raise ValueError(f"freshness of {self.path} would go back: {before.freshness} to {freshness}")
            after = before if computation is None else self._computed_by(computation, how)
            after = replace(after, sequence=before.sequence + 1, freshness=freshness)
            information = {**details, "files": [file.record() for file in consumed]}
            if whole:
                self._replace_files(added, after, information)
            else:
                removed = () if replacing is None else before.files
                self._commits.transact(added, removed, after, information, replacing)
            if replacing is not None:
                self.schema = pa.schema(self._commits.table.schema().to_arrow())
            self._bound_log()
            return self._commits.snapshot.version

    def _replace_files(self, added: Written, after: Snapshot, information: Mapping[str, Any]) -> None:
        """Commits these files as the only ones, also if another writer compacts the table meanwhile."""
        for _ in range(_ATTEMPTS_TO_REPLACE):
            with suppress(CommitOvertaken):
                self._commits.transact(added, self._commits.snapshot.files, after, information)
                return
        raise TableTaken(f"{self.path} has a writer that never rests")

    def check(self, folder: str, expected: Extent | None, written: Written | None = None) -> None:
        """Raises the errors that a commit of the folder would raise for its files."""
        self._acceptable(folder, self.schema, expected, written)

    def check_can_have(self, schema: pa.Schema) -> None:
        """Rejects a schema that the table's protocol does not allow."""
        check_can_have(self.path, self._commits.table, schema)

    def consumed_since(self, version: int) -> Iterator[tuple[int, list[ConsumedFile]]]:
        """The files that each commit after that version consumed."""
        for newer, files in log.consumed_after(self.path, version):
            yield newer, [ConsumedFile(**file) for file in files]

    def compact(self, small_bytes: int, target_bytes: int) -> int:
        """Merges small files into one of about `target_bytes`; returns how many it replaced.

        A call makes one such file, so the caller can stop in between. Updates may be committed meanwhile.
        """
        chosen = compaction.choose(self.files, small_bytes, target_bytes)
        if not chosen:
            return 0
        folder = f"data/compact-{uuid.uuid4().hex}"
        added = self._merged(chosen, folder)
        with self._lock:
            if not set(chosen) <= set(self._commits.snapshot.files):
                return 0  # a rebuild has replaced them; vacuum removes the merged file
            try:
                self._commits.transact(added, chosen, self._commits.snapshot, {"compacted": len(chosen)})
            except CommitOvertaken:
                return 0  # another writer may have compacted; vacuum removes the merged file
        return len(chosen)

    def checkpoint(self) -> None:
        """Writes a checkpoint, so that the table opens without reading the commits before it."""
        with self._lock:
            if self._checkpointed == self._commits.snapshot.version:
                return
            self._commits.checkpoint()
            self._checkpointed = self._commits.snapshot.version

    def clean_log(self, keep_from_version: int) -> int:
        """Removes the log before the history and before that version; returns how many files it removed.

        The log then begins at a checkpoint. The two newest checkpoints always stay: readers that just opened
        the table may use them. Updates may be committed meanwhile and need not wait for the disk.
        """
        with self._cleaning:
            removed = self._cut_log(keep_from_version)
            log.thin_checkpoints(self.path, COMMITS_BETWEEN_CHECKPOINTS)
            return removed

    def _cut_log(self, keep_from_version: int) -> int:
        keep_from_version = min(
            keep_from_version, log.first_since(self.path, time.time() - self.history_us / SECOND)
        )
        past = [version for version in log.checkpoints(self.path)[:-1] if version <= keep_from_version]
        if not past:
            return 0
        log.archive(self.path, past[-1])
        return log.remove(self.path, past[-1])

    def vacuum(self, older_than: timedelta) -> int:
        """Removes leftovers of crashed jobs and files replaced before the history; returns how many.

        `older_than` must exceed the longest job.
        """
        return vacuum(self.path, max(older_than, timedelta(microseconds=self.history_us)))

    def _merged(self, chosen: Sequence[LiveFile], folder: str) -> list[tuple[str, Footer]]:
        """Merges the chosen files into one file in the folder; a failure leaves nothing behind."""
        try:
            compaction.merge(self.path, chosen, self.schema, self.path / folder / "part-0.parquet")
            added = read_footers(self.path, folder, self.schema, self.timestamp)
            if sum(footer.rows for _, footer in added) != sum(file.rows for file in chosen):
                raise UnreadableParquet(f"files of {self.path} have other rows than their statistics say")
        except (OSError, pa.ArrowException, UnreadableParquet):
            shutil.rmtree(self.path / folder, ignore_errors=True)
            raise
        return added

    def _acceptable(
        self,
        folder: str | None,
        schema: pa.Schema,
        expected: Extent | None,
        written: Written | None,
        nulls_allowed: bool = False,
    ) -> Written:
        """The files of an update, after a check that all expected rows are there and have a timestamp.

        A row without a timestamp is before every freshness: only a table that is replaced may have it.
        """
        added = read_footers(self.path, folder, schema, self.timestamp) if written is None else written
        nulls = sum(footer.null_timestamps for _, footer in added)
        if nulls and not nulls_allowed:
            raise NullTimestamps(nulls)
        if expected is not None:
            expected.check(extent_of(footer for _, footer in added))
        return added

    def _bound_log(self) -> None:
        """Makes checkpoints of a table that is never idle. Their failure does not fail the update."""
        if self._commits.snapshot.version - self._checkpointed < COMMITS_WITHOUT_CHECKPOINT:
            return
        try:
            self.checkpoint()
        except (DeltaError, OSError, pa.ArrowException) as error:
            _logger.warning("no checkpoint of %s: %s", self.path, full_disk(error) or error)


def _configuration(history_us: int) -> dict[str, str]:
    """The table properties that make other writers keep the history too."""
    return {
        # Freshline cleans the log, after it has archived it; no other writer should do so before.
        "delta.enableExpiredLogCleanup": "false",
        "delta.logRetentionDuration": _interval(history_us),
        "delta.deletedFileRetentionDuration": _interval(max(history_us, _FILES_KEPT_AT_LEAST_US)),
    }


def _interval(duration_us: int) -> str:
    return f"interval {-(-duration_us // SECOND)} seconds"


def _configure(path: Path, configuration: dict[str, str]) -> None:
    """Changes the table's properties after a change of its definition. Files and freshness stay."""
    table = DeltaTable(path)
    try:
        table.alter.set_table_properties(
            configuration,
            raise_if_not_exists=False,
            commit_properties=CommitProperties(custom_metadata={log.KEY: {"configured": configuration}}),
            post_commithook_properties=NO_HOOKS,
        )
    except DeltaError as error:
        if table.version() == log.commits(path).stop - 1:
            raise
        raise InputError(f"another writer has just changed {path}", "Run again") from error
