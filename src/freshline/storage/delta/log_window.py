"""The end of a table's log in a folder of its own, so that a commit costs the same however long the log is.

delta-rs lists the whole folder of a log when it opens a table, and again at every commit. A log that has a
day's commits takes it 70 ms to list. So it works in a window: a folder with hard links to the last checkpoint
and the commits since. What it writes there counts once it is published, that is linked into the table's log
under the same name, which fails if another writer has taken that version. The table's log alone is the truth:
a window may be lost at any time, and is made anew from it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from freshline.base.processes import process_start
from freshline.storage.delta import log

# How often others may clean the log while we link it.
_ATTEMPTS: Final = 5


class LogWindow:
    """A writer's window on the log of one table; there is none before it is built."""

    def __init__(self, table: Path) -> None:
        self._table = table
        # Of a process of its own: two that both believe to own the table must not write into one window.
        self.root = table / "_freshline" / "window" / f"{os.getpid()}-{uuid.uuid4().hex}"
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)

    def build(self) -> None:
        """Links the last checkpoint and all commits since, and removes windows of processes that are dead."""
        _remove_dead(self.root.parent)
        for attempt in range(1, _ATTEMPTS + 1):
            shutil.rmtree(self.root, ignore_errors=True)
            (self.root / "_delta_log").mkdir(parents=True)
            try:
                hinted = _hinted(self._table)
                # A log has no gap, and the oldest go first: what is there without a next is the newest.
                if hinted is None or not log.has(self._table, self._link(hinted)):
                    self._link(_found(self._table))
                return
            except FileNotFoundError:
                if attempt == _ATTEMPTS:
                    raise

    def has(self, version: int) -> bool:
        """Whether that version can be read from it."""
        return log.has(self.root, version)

    def follow(self, version: int) -> int:
        """Links what the table's log has beyond a version, and nothing else stays; the newest version."""
        newest = version
        while self._link_commit(newest + 1):
            newest += 1
        # What was never published belongs to no version.
        log.commit_path(self.root, newest + 1).unlink(missing_ok=True)
        return newest

    def publish(self, version: int) -> bool:
        """Makes a commit of the window one of the table; False: another was first, and ours is gone."""
        ours, public = log.commit_path(self.root, version), log.commit_path(self._table, version)
        try:
            os.link(ours, public)
        except OSError as error:
            # A file system on a network may have done it and say so.
            if _is_same(ours, public):
                return True
            # Not to be taken for another writer's.
            ours.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                return False
            raise
        return True

    def publish_checkpoint(self, version: int, hint: str) -> None:
        """Makes a checkpoint of the window one of the table, and the one where readers begin."""
        with contextlib.suppress(FileExistsError):  # another writer's says the same
            os.link(log.checkpoint_path(self.root, version), log.checkpoint_path(self._table, version))
        draft = self.root / "_last_checkpoint"
        draft.write_text(hint, encoding="utf-8")
        draft.replace(log.hint_path(self._table))

    def cut(self, version: int) -> None:
        """Forgets what is before a checkpoint."""
        log.remove(self.root, version)

    def _link(self, checkpoint: int) -> int:
        """Links that checkpoint, none if it is -1, and the commits since; the newest version."""
        if checkpoint >= 0:
            public = log.checkpoint_path(self._table, checkpoint)
            with contextlib.suppress(FileExistsError):
                self._bring(public, log.checkpoint_path(self.root, checkpoint))
            self._link_commit(checkpoint)  # delta-rs commits to no version that it has no commit of
        return self.follow(checkpoint)

    def _link_commit(self, version: int) -> bool:
        window, public = log.commit_path(self.root, version), log.commit_path(self._table, version)
        try:
            self._bring(public, window)
        except FileExistsError:
            if not _is_same(window, public):
                window.unlink()
                return self._link_commit(version)
        except FileNotFoundError:
            if not window.parent.exists():
                raise
            return False
        return True

    def _bring(self, public: Path, window: Path) -> None:
        """Links what never changes, or copies it: Linux may forbid links to what belongs to others."""
        try:
            os.link(public, window)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:
            draft = self.root / "draft"
            shutil.copyfile(public, draft)
            draft.replace(window)


def _hinted(table: Path) -> int | None:
    """The checkpoint that the log's own hint names, if it is there in one piece."""
    version = log.last_checkpoint(table)
    return version if version is not None and log.checkpoint_path(table, version).exists() else None


def _found(table: Path) -> int:
    """The newest checkpoint, -1 where the log goes back to the beginning; made if there is neither."""
    present = log.commits(table)
    whole = [
        version
        for version in log.checkpoints(table)
        if (version in present or not present) and log.checkpoint_path(table, version).exists()
    ]
    if whole or (present and present.start == 0):
        return max(whole, default=-1)
    # Another writer's checkpoint, in parts perhaps.
    there = DeltaTable(table)
    there.create_checkpoint()
    return int(there.version())


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False


def _remove_dead(windows: Path) -> None:
    for window in _folders(windows):
        process = window.name.partition("-")[0]
        if not process.isdecimal() or process_start(int(process)) is None:
            shutil.rmtree(window, ignore_errors=True)


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from list(folder.iterdir())
