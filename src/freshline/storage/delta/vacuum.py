"""Removes replaced files and leftovers of crashed jobs from a table's folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from deltalake import DeltaTable

_HOUR = timedelta(hours=1)


def vacuum(table: Path, older_than: timedelta) -> int:
    """Removes empty folders and files outside the table for `older_than`; returns how many files.

    Only a full vacuum knows orphans. A replaced file's age counts from its replacement, an orphan's from its
    writing. So a running job's files are safe as long as no job takes `older_than`.
    """
    assert older_than >= timedelta(0), "older_than is negative"
    # delta-rs only lists them: removing them here saves the table two commits.
    orphans = DeltaTable(table).vacuum(
        retention_hours=-(-older_than // _HOUR), dry_run=True, enforce_retention_duration=False, full=True
    )
    emptied: set[Path] = set()
    for orphan in orphans:
        path = table / orphan
        path.unlink(missing_ok=True)
        emptied.add(path.parent)
    _remove_empty_folders(table / "data", emptied, time.time() - older_than.total_seconds())
    return len(orphans)


def _remove_empty_folders(root: Path, emptied: Iterable[Path], before: float) -> None:
    """Removes folders that were just emptied or have been empty since before that time."""
    candidates = set(emptied)
    for name, _, _ in os.walk(root, topdown=False):
        folder = Path(name)
        # Another process may have removed it, or a job may just have put a file there.
        with contextlib.suppress(OSError):
            if folder != root and (folder in candidates or folder.stat().st_mtime < before):
                folder.rmdir()
                candidates.add(folder.parent)
