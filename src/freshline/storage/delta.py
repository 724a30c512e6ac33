"""A warehouse's table: a Delta table to which one writer adds whole updates, each exactly once.

Spark writes an update's Parquet files into a folder of their own; `commit` makes them part of the table,
moves its freshness and notes which data files were consumed, all in one step of the Delta log.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
)

from freshline.definitions.errors import InputError
from freshline.storage import compaction, log
from freshline.storage.extent import Extent, extent_of
from freshline.storage.files import Consumed, LiveFile
from freshline.storage.layout import confined
from freshline.storage.schema import differences
from freshline.storage.snapshot import Snapshot, read_snapshot
from freshline.storage.statistics import Footer, UnreadableFile, read_footer
from freshline.storage.vacuum import vacuum

__all__ = ["Consumed", "LiveFile", "NullTimestamps", "StoredTable", "TableTaken", "UnreadableFile"]

# Each commit since the snapshot was loaded makes the next one about 0.3 ms slower, a checkpoint and loading
# it take 20 ms: 25 is the best of 10, 25, 50, 100, 200 (7 ms a commit on average; 35 ms with 200).
COMMITS_WITHOUT_CHECKPOINT: Final = 25
# What is cleaned away is first made safe on the disk, which can take a second and is no update's business.
# Only where nobody else does it is it an update's after so many commits: every reader lists them.
COMMITS_WITHOUT_CLEANING: Final = 400
# Statistics of other writers, delta-rs itself among them, are cut to milliseconds.
_STATISTICS_GRAIN_US: Final = 999
_CONFIGURATION: Final = {
    # The log is cleaned here, after what it says was put aside; no other writer should do it before.
    "delta.enableExpiredLogCleanup": "false",
    # So long every checkpoint carries the files that were replaced: 10,000 of them make a table open in
    # 13 ms instead of 8. Foreign vacuums keep to it too, so it must not be less than a job or query takes.
    "delta.deletedFileRetentionDuration": "interval 1 hour",
}
_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_logger = logging.getLogger(__name__)


class TableTaken(Exception):  # noqa: N818  (it is what happened)
    """Another writer committed to the table since we opened it: open it again, and decide anew."""


class _Overtaken(Exception):  # noqa: N818
    """A foreign writer committed first, and what we meant to remove may be gone."""


class NullTimestamps(Exception):  # noqa: N818  (it is what was found)
    """An update has rows without a timestamp."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} rows have no timestamp")


class StoredTable:
    """A Delta table, opened by its only writer or by readers."""

    def __init__(self, path: Path, timestamp: str, table: DeltaTable) -> None:
        self.path = path
        self.timestamp = timestamp
        self.id = str(table.metadata().id)
        self.schema: pa.Schema = pa.schema(table.schema().to_arrow())
        self._lock = threading.RLock()
        self._cleaning = threading.Lock()
        self._table = table
        self._snapshot = read_snapshot(path, timestamp, table)
        self._checkpointed = max(log.checkpoints(path), default=0)
        self._oldest_commit = log.commits(path).start
        self._taken = False

    @classmethod
    def open_or_create(cls, path: Path, name: str, schema: pa.Schema, timestamp: str) -> StoredTable:
        """The table at a path, made if it is not there; one with another schema is refused."""
        assert timestamp in schema.names, f"{name} has no column {timestamp}"
        if not DeltaTable.is_deltatable(str(path)):
            DeltaTable.create(path, schema, mode="ignore", name=name, configuration=_CONFIGURATION)
        table = DeltaTable(path)
        others = differences(table.schema(), DeltaSchema.from_arrow(schema))
        if table.metadata().partition_columns:
            others.append("it is partitioned")
        if others:
            raise InputError(
                f"the table {name} at {path} is not as it is defined: {'; '.join(others)}",
                "Give the definition another name, or move the old table away; a derived table can be made "
                "anew with 'freshline rebuild'",
            )
        return cls(path, timestamp, table)

    @classmethod
    def open(cls, path: Path, timestamp: str) -> StoredTable:
        """The table at a path, for readers."""
        try:
            return cls(path, timestamp, DeltaTable(path))
        except TableNotFoundError as error:
            raise InputError(f"there is no table at {path}", "Let 'freshline run' make it first") from error

    @property
    def version(self) -> int:
        """The Delta version of the snapshot."""
        return self._snapshot.version

    @property
    def sequence(self) -> int:
        """How many updates have been committed."""
        return self._snapshot.sequence

    @property
    def freshness(self) -> int | None:
        """The newest timestamp loaded, in microseconds; None before the first update."""
        return self._snapshot.freshness

    @property
    def files(self) -> tuple[LiveFile, ...]:
        """The table's files; a tuple that stays as it is whatever is committed meanwhile."""
        return self._snapshot.files

    def files_between(self, after_us: int, to_us: int) -> list[str]:
        """The absolute paths of the files that may have rows with after < timestamp <= to."""
        return [
            str(self.path / file.path)
            for file in self._snapshot.files
            if file.rows
            and (file.oldest is None or file.oldest <= to_us)
            and (file.newest is None or file.newest + _STATISTICS_GRAIN_US > after_us)
        ]

    def commit(
        self,
        folder: str | None,
        freshness: int,
        consumed: Sequence[Consumed],
        details: Mapping[str, Any],
        replacing: pa.Schema | None = None,
        expected: Extent | None = None,
    ) -> int:
        """Adds the Parquet files of the folder as the next update; the new version.

        `replacing` makes them the table's only files and this its schema, for a rebuild; `expected`
        says which rows there must be.
        """
        if replacing is not None:
            self.check_can_have(replacing)
        added = self._written(folder, self.schema if replacing is None else replacing)
        nulls = sum(footer.null_timestamps for _, footer in added)
        if nulls:
            raise NullTimestamps(nulls)
        if expected is not None:
            expected.check(extent_of(footer for _, footer in added))
        with self._lock:
            before = self._snapshot
            if before.freshness is not None and freshness < before.freshness:
                raise ValueError(f"freshness of {self.path} would go back: {before.freshness} to {freshness}")
            after = replace(before, sequence=before.sequence + 1, freshness=freshness)
            information = {**details, "files": [asdict(file) for file in consumed]}
            self._transact(added, () if replacing is None else before.files, after, information, replacing)
            if replacing is not None:
                self.schema = pa.schema(self._table.schema().to_arrow())
            self._bound_log()
            return self._snapshot.version

    def check_can_have(self, schema: pa.Schema) -> None:
        """Refuses a schema that the table was not made for: it could be committed, and never opened again."""
        features = self._table.protocol().writer_features or ()
        if "timestampNtz" not in features and '"timestamp_ntz"' in DeltaSchema.from_arrow(schema).to_json():
            raise InputError(
                f"the table at {self.path} was made without timestamp_ntz: it cannot get such a column",
                "Cast it to timestamp, or move the old table away",
            )

    def consumed_since(self, version: int) -> Iterator[tuple[int, list[Consumed]]]:
        """What each commit after that version consumed."""
        for newer, files in log.consumed_after(self.path, version):
            yield newer, [Consumed(**file) for file in files]

    def compact(self, small_bytes: int, target_bytes: int) -> int:
        """Merges small files into one of about `target_bytes`; how many it replaced, 0 if too few are small.

        One such file a call, so that the caller can stop between. Updates may be committed meanwhile.
        """
        chosen = compaction.choose(self.files, small_bytes, target_bytes)
        if not chosen:
            return 0
        folder = f"data/compact-{uuid.uuid4().hex}"
        added = self._merged(chosen, folder)
        with self._lock:
            if not set(chosen) <= set(self._snapshot.files):
                return 0  # a rebuild has replaced them; vacuum removes what was merged
            try:
                self._transact(added, chosen, self._snapshot, {"compacted": len(chosen)})
            except _Overtaken:
                return 0  # somebody else has compacted it, perhaps; vacuum removes what was merged
        return len(chosen)

    def checkpoint(self) -> None:
        """Writes a checkpoint, from which the table opens without reading the commits before."""
        with self._lock:
            if self._checkpointed == self._snapshot.version:
                return
            self._table.create_checkpoint()
            self._checkpointed = self._snapshot.version
            self._reopen()

    @property
    def commits_in_log(self) -> int:
        """How many commits the log has, of which `clean_log` leaves 50 at most."""
        return self._snapshot.version + 1 - self._oldest_commit

    def clean_log(self, keep_from_version: int) -> int:
        """Removes what the log has before the last checkpoint up to that version; how many files went.

        The two newest checkpoints stay in any case: readers that just opened the table may still be there.
        Updates may be committed meanwhile, and need not wait for the disk.
        """
        with self._cleaning:
            return self._clean_log(keep_from_version)

    def _clean_log(self, keep_from_version: int) -> int:
        past = [version for version in log.checkpoints(self.path)[:-1] if version <= keep_from_version]
        if not past:
            return 0
        log.archive(self.path, past[-1])
        with self._lock:
            removed = log.remove(self.path, past[-1])
            self._oldest_commit = past[-1]
            if removed:
                self._reopen()
            return removed

    def vacuum(self, older_than: timedelta) -> int:
        """Removes what crashed jobs and compactions left; `older_than` must exceed the longest job."""
        return vacuum(self.path, older_than)

    def _merged(self, chosen: Sequence[LiveFile], folder: str) -> list[tuple[str, Footer]]:
        """The chosen files' rows in one file in the folder; nothing is left behind if that does not work."""
        try:
            compaction.merge(self.path, chosen, self.schema, self.path / folder / "part-0.parquet")
            added = self._written(folder, self.schema)
            if sum(footer.rows for _, footer in added) != sum(file.rows for file in chosen):
                raise UnreadableFile(f"files of {self.path} have other rows than their statistics say")
        except (OSError, pa.ArrowException, UnreadableFile):
            shutil.rmtree(self.path / folder, ignore_errors=True)
            raise
        return added

    def _written(self, folder: str | None, schema: pa.Schema) -> list[tuple[str, Footer]]:
        """The files with rows that a job wrote, each with its footer; delta-rs would add missing ones too."""
        if folder is None:
            return []
        place = confined(self.path, folder)
        if not place.is_dir():
            raise UnreadableFile(f"{place} is missing")
        paths = sorted(path for path in place.glob("*.parquet") if path.name[0] not in "._")
        footers = [(path, read_footer(path, schema, self.timestamp)) for path in paths]
        return [(path.relative_to(self.path).as_posix(), footer) for path, footer in footers if footer.rows]

    def _transact(
        self,
        added: Sequence[tuple[str, Footer]],
        removed: Sequence[LiveFile],
        after: Snapshot,
        information: Mapping[str, Any],
        replacing: pa.Schema | None = None,
    ) -> None:
        """One commit from the snapshot we have, which becomes `after` with the files added and removed.

        If others have committed since, delta-rs checks each of their commits and tries again (15 times, its
        default). One with an application id of ours fails ours, so does a change of schema or protocol; a
        foreign compaction or append does not. Without retries every foreign commit would throw a finished
        Spark job away, and nothing were gained: two writers of ours conflict either way, at the first commit
        of the second. After a reload they would not. What removes files is not tried again: of files that a
        foreign compaction has removed too delta-rs says nothing, and their rows would be there twice.
        """
        if self._taken:
            raise TableTaken(f"{self.path} has another writer")
        before = self._snapshot
        update = after.sequence != before.sequence
        now_ms = time.time_ns() // 1_000_000
        identity = uuid.uuid4().hex
        actions: list[AddAction | RemoveAction] = [
            AddAction(path, footer.size, {}, now_ms, update, footer.statistics) for path, footer in added
        ]
        if replacing is None:  # otherwise delta-rs removes all there are
            actions += [RemoveAction(file.path, update, now_ms, file.size, {}) for file in removed]
        properties = CommitProperties(
            custom_metadata={log.KEY: {**information, "id": identity}},
            max_commit_retries=0 if removed or replacing is not None else None,
            app_transactions=after.transactions(),
        )
        try:
            self._table.create_write_transaction(
                actions,
                "append" if replacing is None else "overwrite",
                self._table.schema() if replacing is None else DeltaSchema.from_arrow(replacing),
                commit_properties=properties,
                post_commithook_properties=_NO_HOOKS,
            )
        except (DeltaError, OSError) as error:
            # The log alone knows whether it was committed before the error, and whether another was first.
            if not log.has_commit(self.path, before.version, identity):
                if log.commits(self.path).stop - 1 == before.version:
                    raise
                if not update:
                    self._follow_others()
                    raise _Overtaken from error
                self._taken = True
                raise TableTaken(f"{self.path} has another writer: {error}") from error
        gone = set(removed)
        kept = tuple(file for file in before.files if file not in gone) if gone else before.files
        files = kept + tuple(_live(path, footer) for path, footer in added)
        self._advance(replace(after, version=before.version + 1, files=files), identity)
        _touch(self.path / file.path for file in removed)

    def _advance(self, after: Snapshot, identity: str) -> None:
        """Moves the snapshot to our commit, and makes sure that it is what the log has."""
        # Until that is certain nothing may be committed: delta-rs would accept the same update once more from
        # a snapshot that has moved already.
        self._taken = True
        try:
            self._table.update_incremental()
            alone = self._table.version() == after.version
        except DeltaError:
            alone = False
        if alone and log.commit_information(self.path, after.version).get("id") == identity:
            self._snapshot, self._taken = after, False
            return
        # Others committed too, before or after ours. Or ours went to where the log has been cleaned since,
        # and no reader will see it.
        table, snapshot = self._present(after)
        if not log.has_commit(self.path, after.version - 1, identity):
            raise TableTaken(f"{self.path} has another writer")
        self._table, self._snapshot, self._taken = table, snapshot, False

    def _follow_others(self) -> None:
        """Takes over what others committed, if it was no update."""
        self._taken = True
        self._table, self._snapshot = self._present(self._snapshot)
        self._taken = False

    def _present(self, expected: Snapshot) -> tuple[DeltaTable, Snapshot]:
        """The table as it is now, with all updates that we know of and no other."""
        table = DeltaTable(self.path)
        snapshot = read_snapshot(self.path, self.timestamp, table)
        if (snapshot.sequence, snapshot.freshness) != (expected.sequence, expected.freshness):
            raise TableTaken(f"{self.path} has another writer")
        return table, snapshot

    def _reopen(self) -> None:
        """Loads the same version anew: fewer commits to carry along, and none that has been cleaned away."""
        self._table = DeltaTable(self.path, version=self._snapshot.version)

    def _bound_log(self) -> None:
        """A table that is never idle has its log kept short too; trouble with that is not the update's."""
        if self._snapshot.version - self._checkpointed < COMMITS_WITHOUT_CHECKPOINT:
            return
        try:
            self.checkpoint()
            # Never waiting: who cleans may be waiting for us.
            if self.commits_in_log > COMMITS_WITHOUT_CLEANING and self._cleaning.acquire(blocking=False):
                try:
                    self._clean_log(self._snapshot.version)
                finally:
                    self._cleaning.release()
        except (DeltaError, OSError) as error:
            _logger.warning("no checkpoint of %s: %s", self.path, error)


def _touch(replaced: Iterable[Path]) -> None:
    """Vacuum goes by a file's own time once the log has forgotten when it was replaced: let it be then."""
    for path in replaced:
        with contextlib.suppress(OSError):
            os.utime(path)


def _live(path: str, footer: Footer) -> LiveFile:
    return LiveFile(path, footer.rows, footer.size, footer.oldest, footer.newest)
