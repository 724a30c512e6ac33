"""The end of a table's log in a folder of its own: a commit then costs the same however long the log is.

delta-rs lists the whole folder of a log when it opens a table and again at every commit. For a log with a
day's commits that takes 70 ms. So delta-rs works in a window: a folder with hard links to the last checkpoint
and the commits since. A commit in the window counts once it is published, which means linked into the table's
log under the same name. The link fails if another writer has taken that version. Only the table's log is the
truth: a lost window is rebuilt from it.
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

# How often the build is retried if others clean the log meanwhile.
_ATTEMPTS: Final = 5


class LogWindow:
    """A writer's window on the log of one table; `build` makes its folder."""

    def __init__(self, table: Path) -> None:
        self._table = table
        # Each process has its own: two writers of one table must not write into the same window.
        self.root = table / "_freshline" / "window" / f"{os.getpid()}-{uuid.uuid4().hex}"
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)

    def build(self) -> None:
        """Links the last checkpoint and all commits since, and removes windows of dead processes."""
        _remove_dead(self.root.parent)
        for attempt in range(1, _ATTEMPTS + 1):
            shutil.rmtree(self.root, ignore_errors=True)
            (self.root / "_delta_log").mkdir(parents=True)
            try:
                hinted = _hinted(self._table)
                # A log has no gap and is cleaned from its old end: a commit without a next one is the newest.
                if hinted is None or not log.has(self._table, self._link(hinted)):
                    self._link(_found(self._table))
                return
            except FileNotFoundError:
                if attempt == _ATTEMPTS:
                    raise

    def check_newest(self) -> None:
        """Raises InputError if the newest commit is damaged."""
        present = log.commits(self.root)
        if present:
            log.check_newest(self._table, present[-1])

    def has(self, version: int) -> bool:
        return log.has(self.root, version)

    def follow(self, version: int) -> int:
        """Links the commits after a version and removes unpublished ones; returns the newest version."""
        newest = version
        while self._link_commit(newest + 1):
            newest += 1
        log.commit_path(self.root, newest + 1).unlink(missing_ok=True)
        return newest

    def publish(self, version: int) -> bool:
        """Links a commit of the window into the table; if another was first, removes it and returns False."""
        ours, public = log.commit_path(self.root, version), log.commit_path(self._table, version)
        try:
            os.link(ours, public)
        except OSError as error:
            # A network file system may report an error although it made the link.
            if _is_same(ours, public):
                return True
            # It must not count as another writer's commit.
            ours.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                return False
            raise
        return True

    def publish_checkpoint(self, version: int, hint: str) -> None:
        """Links a checkpoint of the window into the table, and has readers begin there."""
        with contextlib.suppress(FileExistsError):  # another writer's has the same content
            os.link(log.checkpoint_path(self.root, version), log.checkpoint_path(self._table, version))
        draft = self.root / "_last_checkpoint"
        draft.write_text(hint, encoding="utf-8")
        draft.replace(log.hint_path(self._table))

    def cut(self, version: int) -> None:
        """Removes everything before a checkpoint."""
        log.remove(self.root, version)

    def _link(self, checkpoint: int) -> int:
        """Links that checkpoint (-1: none) and the commits since; returns the newest version."""
        if checkpoint >= 0:
            public = log.checkpoint_path(self._table, checkpoint)
            with contextlib.suppress(FileExistsError):
                self._bring(public, log.checkpoint_path(self.root, checkpoint))
            self._link_commit(checkpoint)  # delta-rs needs the commit of the version that it builds on
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
        """Links a file that never changes, or copies it: Linux may forbid links to other owners' files."""
        try:
            os.link(public, window)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:
            draft = self.root / "draft"
            shutil.copyfile(public, draft)
            draft.replace(window)


def _hinted(table: Path) -> int | None:
    """The checkpoint that the log's hint names, if it exists as a single file."""
    version = log.last_checkpoint(table)
    return version if version is not None and log.checkpoint_path(table, version).exists() else None


def _found(table: Path) -> int:
    """The newest checkpoint, or -1 if the log is complete; makes a checkpoint if neither holds."""
    present = log.commits(table)
    whole = [
        version
        for version in log.checkpoints(table)
        if (version in present or not present) and log.checkpoint_path(table, version).exists()
    ]
    if whole or (present and present.start == 0):
        return max(whole, default=-1)
    # There may be another writer's checkpoint in several files.
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
