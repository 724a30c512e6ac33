"""The newest known version of a table and the commits that add to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
)

from freshline.base.clock import clock
from freshline.storage.delta import log
from freshline.storage.delta.checkpoint import slim
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.log_window import LogWindow
from freshline.storage.delta.snapshot import Snapshot, read_snapshot
from freshline.storage.delta.statistics import Footer

NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_ATTEMPTS: Final = 15


class TableTaken(Exception):  # noqa: N818  (it is what happened)
    """Another writer has committed to the table since it was opened: open it again and retry."""


class CommitOvertaken(Exception):  # noqa: N818
    """A foreign writer committed first, and the files to remove may be gone."""


class Commits:
    """The end of a table's log as its only writer knows it. One thread at a time commits.

    Other threads read the snapshot, which is replaced as a whole.
    """

    def __init__(self, path: Path, timestamp: str, table: DeltaTable, window: LogWindow) -> None:
        self._path = path
        self._timestamp = timestamp
        self._window = window  # from the first commit on, `table` is the one in the window
        self.table = table
        self.snapshot = read_snapshot(path, timestamp, table)
        self._taken = False

    def transact(
        self,
        added: Sequence[tuple[str, Footer]],
        removed: Sequence[LiveFile],
        after: Snapshot,
        information: Mapping[str, Any],
        replacing: pa.Schema | None = None,
    ) -> None:
        """One commit on the current snapshot, which becomes `after` with the files added and removed.

        If others have committed since, delta-rs checks each of their commits and retries, 15 times by
        default. The commit fails if another one has an application id of ours or changes the schema or the
        protocol. It does not fail for a foreign compaction or append, so no finished Spark job is lost. Two
        writers of ours conflict at the first commit of the second; after a reload they would not. A commit
        that removes files is not retried here (`CommitOvertaken`): delta-rs does not notice files that a
        foreign compaction has removed too, and their rows would be in the table twice.
        """
        if self._taken:
            raise TableTaken(f"{self._path} has another writer")
        before = self.snapshot
        update = (after.sequence, after.computation) != (before.sequence, before.computation)
        now_ms = clock() // 1_000
        identity = uuid.uuid4().hex
        actions: list[AddAction | RemoveAction] = [
            AddAction(path, footer.size, {}, now_ms, update, footer.statistics) for path, footer in added
        ]
        if replacing is None:  # otherwise delta-rs removes all files
            actions += [RemoveAction(file.path, update, now_ms, file.size, {}) for file in removed]
        attempts = 1 if removed or replacing is not None else _ATTEMPTS
        properties = CommitProperties(
            custom_metadata={log.KEY: {**information, "id": identity}},
            max_commit_retries=0 if attempts == 1 else None,
            app_transactions=after.transactions(),
        )

        def write() -> None:
            self.table.create_write_transaction(
                actions,
                "append" if replacing is None else "overwrite",
                self.table.schema() if replacing is None else DeltaSchema.from_arrow(replacing),
                commit_properties=properties,
                post_commithook_properties=NO_HOOKS,
            )

        try:
            self._publish(write, identity, attempts)
        except (DeltaError, OSError) as error:
            # Only the log tells whether the commit came before the error and whether another was first.
            if not log.has_commit(self._path, before.version, identity):
                if log.commits(self._path).stop - 1 == before.version:
                    raise
                if not update or (removed and replacing is None):
                    self._follow_others()
                    raise CommitOvertaken from error
                self._taken = True
                raise TableTaken(f"{self._path} has another writer: {error}") from error
        gone = set(removed)
        kept = tuple(file for file in before.files if file not in gone) if gone else before.files
        files = kept + tuple(_live(path, footer) for path, footer in added)
        self._advance(replace(after, version=before.version + 1, files=files), identity)

    def _publish(self, write: Callable[[], None], identity: str, attempts: int) -> None:
        """Commits in the window with delta-rs, then publishes the commit in the table.

        If another writer publishes a commit in between, ours fails and is then checked against the other. A
        crash before the publication leaves no commit, a crash after it leaves one.
        """
        for _ in range(attempts):
            self._enter_window()
            if not log.has(self._path, self.snapshot.version):
                break  # the log was cleaned beyond this version: no reader would see the commit
            newest = self._window.follow(self.snapshot.version)
            try:
                write()
            except (DeltaError, OSError):
                if log.identity(self._window.root, newest + 1) != identity:
                    raise
            if self._window.publish(newest + 1):
                return
        raise CommitFailedError("others have committed")

    def _enter_window(self) -> None:
        """Opens the table in the window, unless it is open there already."""
        if not self._window.has(self.snapshot.version):
            self._window.build()
            self.table = DeltaTable(self._window.root, version=self.snapshot.version)

    def _advance(self, after: Snapshot, identity: str) -> None:
        """Moves the snapshot to our commit and checks that the log has that commit."""
        # Until the check is done nothing may be committed: from a moved snapshot delta-rs would accept the
        # same update once more.
        self._taken = True
        try:
            self.table.update_incremental()
            alone = self.table.version() == after.version
        except DeltaError:
            alone = False
        # If the commit before ours is still there, ours is in the log: a log has no gaps.
        alone = alone and log.has(self._path, after.version - 1)
        if alone and log.commit_information(self._path, after.version).get("id") == identity:
            self.snapshot, self._taken = after, False
            return
        # Others have committed too. Or our commit is in the cleaned part of the log, where no reader sees it.
        table, snapshot = self._present(after)
        if not log.has_commit(self._path, after.version - 1, identity):
            raise TableTaken(f"{self._path} has another writer")
        self.table, self.snapshot, self._taken = table, snapshot, False

    def _follow_others(self) -> None:
        """Takes over the commits of others, unless one of them is an update."""
        self._taken = True
        self.table, self.snapshot = self._present(self.snapshot)
        self._taken = False

    def _present(self, expected: Snapshot) -> tuple[DeltaTable, Snapshot]:
        """The table as it is now, with all known updates and no other."""
        self._window.build()
        table = DeltaTable(self._window.root)
        snapshot = read_snapshot(self._path, self._timestamp, table)
        if snapshot.versions != expected.versions:
            raise TableTaken(f"{self._path} has another writer")
        return table, snapshot

    def checkpoint(self) -> None:
        """Writes a checkpoint and continues from it, with fewer commits in memory."""
        version = self.snapshot.version
        self._enter_window()
        self.table.create_checkpoint()
        hint = slim(self._path, log.checkpoint_path(self._window.root, version), version)
        self._window.publish_checkpoint(version, hint)
        self._window.cut(version)
        self.table = DeltaTable(self._window.root, version=version)


def _live(path: str, footer: Footer) -> LiveFile:
    return LiveFile(path, footer.rows, footer.size, footer.oldest, footer.newest)
