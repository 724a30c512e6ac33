"""Checkpoints of SQLite's write-ahead logs, made outside the updates.

By itself SQLite makes a checkpoint within a commit, every few thousand pages. That commit then waits for the
disk, for more than a second if others write too. An update must not wait so long.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

# Without housekeeping a commit makes the checkpoint after all, so that the log stays below 40 MB.
_PAGES_MAX: Final = 10_000


def write_ahead(connection: sqlite3.Connection) -> None:
    """Turns the log on. Commits then do not wait for the disk; a power failure may lose the last ones."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_MAX}")


def fold(database: Path) -> None:
    """Makes a checkpoint of the log; other connections can read and write meanwhile."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
