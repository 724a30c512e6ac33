"""The newest version of a table that we know of, and the commits that move it."""

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
    """Another writer committed to the table since we opened it: open it again, and decide anew."""


class CommitOvertaken(Exception):  # noqa: N818
    """A foreign writer committed first, and what we meant to remove may be gone."""


class Commits:
    """The end of a table's log as its only writer knows it. One thread at a time commits.

    Readers of other threads take the snapshot, which is replaced as a whole.
    """

    def __init__(self, path: Path, timestamp: str, table: DeltaTable, window: LogWindow) -> None:
        self._path = path
        self._timestamp = timestamp
        self._window = window  # from the first commit on `table` is the one in there
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
        """One commit from the snapshot we have, which becomes `after` with the files added and removed.

        If others have committed since, delta-rs checks each of their commits and tries again (15 times, its
        default). One with an application id of ours fails ours, so does a change of schema or protocol; a
        foreign compaction or append does not. Without retries every foreign commit would throw a finished
        Spark job away, and nothing were gained: two writers of ours conflict either way, at the first commit
        of the second. After a reload they would not. What removes files is not tried again: of files that a
        foreign compaction has removed too delta-rs says nothing, and their rows would be there twice.
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
        if replacing is None:  # otherwise delta-rs removes all there are
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
            # The log alone knows whether it was committed before the error, and whether another was first.
            if not log.has_commit(self._path, before.version, identity):
                if log.commits(self._path).stop - 1 == before.version:
                    raise
                if not update:
                    self._follow_others()
                    raise CommitOvertaken from error
                self._taken = True
                raise TableTaken(f"{self._path} has another writer: {error}") from error
        gone = set(removed)
        kept = tuple(file for file in before.files if file not in gone) if gone else before.files
        files = kept + tuple(_live(path, footer) for path, footer in added)
        self._advance(replace(after, version=before.version + 1, files=files), identity)

    def _publish(self, write: Callable[[], None], identity: str, attempts: int) -> None:
        """Has delta-rs commit in the window, and then the table.

        A commit that another writer publishes in between fails ours, which is then checked against it like
        any other. After a crash before it is published there is no commit; after that there is.
        """
        for _ in range(attempts):
            self._enter_window()
            if not log.has(self._path, self.snapshot.version):
                break  # the log has been cleaned up to beyond it: no reader sees what is written there
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
        """Has delta-rs work there, where it does not yet, or it was removed."""
        if not self._window.has(self.snapshot.version):
            self._window.build()
            self.table = DeltaTable(self._window.root, version=self.snapshot.version)

    def _advance(self, after: Snapshot, identity: str) -> None:
        """Moves the snapshot to our commit, and makes sure that it is what the log has."""
        # Until that is certain nothing may be committed: delta-rs would accept the same update once more from
        # a snapshot that has moved already.
        self._taken = True
        try:
            self.table.update_incremental()
            alone = self.table.version() == after.version
        except DeltaError:
            alone = False
        # With the commit before ours still there the log cannot have gone on elsewhere: it has no gaps.
        alone = alone and log.has(self._path, after.version - 1)
        if alone and log.commit_information(self._path, after.version).get("id") == identity:
            self.snapshot, self._taken = after, False
            return
        # Others committed too, before or after ours. Or ours went to where the log has been cleaned since,
        # and no reader will see it.
        table, snapshot = self._present(after)
        if not log.has_commit(self._path, after.version - 1, identity):
            raise TableTaken(f"{self._path} has another writer")
        self.table, self.snapshot, self._taken = table, snapshot, False

    def _follow_others(self) -> None:
        """Takes over what others committed, if it was no update."""
        self._taken = True
        self.table, self.snapshot = self._present(self.snapshot)
        self._taken = False

    def _present(self, expected: Snapshot) -> tuple[DeltaTable, Snapshot]:
        """The table as it is now, with all updates that we know of and no other."""
        self._window.build()
        table = DeltaTable(self._window.root)
        snapshot = read_snapshot(self._path, self._timestamp, table)
        if snapshot.versions != expected.versions:
            raise TableTaken(f"{self._path} has another writer")
        return table, snapshot

    def checkpoint(self) -> None:
        """Writes a checkpoint, and goes on from it: fewer commits to carry along."""
        version = self.snapshot.version
        self._enter_window()
        self.table.create_checkpoint()
        hint = slim(self._path, log.checkpoint_path(self._window.root, version), version)
        self._window.publish_checkpoint(version, hint)
        self._window.cut(version)
        self.table = DeltaTable(self._window.root, version=version)


def _live(path: str, footer: Footer) -> LiveFile:
    return LiveFile(path, footer.rows, footer.size, footer.oldest, footer.newest)
