"""SQLite's write-ahead logs, folded into their databases aside from the work.

SQLite would do it within every so many thousandth commit, which then waits until the disk has all of it: more
than a second where others write too. That must not be an update's second.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

# Only where no housekeeping folds it does a commit do it after all, so that the log stays below 40 MB.
_PAGES_MAX: Final = 10_000


def write_ahead(connection: sqlite3.Connection) -> None:
    """Has a database keep such a log, and a commit wait for no disk: the last ones may go with the power."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_MAX}")


def fold(database: Path) -> None:
    """Takes what is in the log over into the database; others read and write meanwhile."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
