"""All data files that have been consumed, by table and name.

The tables' logs are the truth and the ledger is their index: it follows them, and is rebuilt from them
when its file is lost or damaged.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from freshline.base.disk import full_disk
from freshline.base.errors import InputError
from freshline.storage.control.sqlite_wal import write_ahead
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable

_Result = TypeVar("_Result")
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS consumed (
    table_name TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    discarded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (table_name, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS applied (
    table_name TEXT PRIMARY KEY,
    table_id TEXT NOT NULL,
    version INTEGER NOT NULL
) WITHOUT ROWID;
"""
_logger = logging.getLogger(__name__)


class Ledger:
    """The consumed files of all tables, in SQLite; any thread may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._followed: dict[str, StoredTable] = {}
        try:
            self._connection = self._opened()
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"the ledger {path} cannot be opened: {full_disk(error) or error}",
                "Give access to it, or move it away: Freshline then rebuilds it from the tables' logs",
            ) from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def find(self, table: str, name: str) -> ConsumedFile | None:
        """The consumed file of that name; None if the table has not consumed it."""

        def look() -> ConsumedFile | None:
            row = self._connection.execute(
                "SELECT name, size, mtime_ns, digest, discarded FROM consumed "
                "WHERE table_name = ? AND name = ?",
                (table, name),
            ).fetchone()
            return ConsumedFile(row[0], row[1], row[2], row[3], bool(row[4])) if row else None

        return self._mended(look)

    def applied(self, table: str) -> int:
        """The Delta version up to which the table's log is in the ledger; -1 if the ledger has none of it."""

        def look() -> int:
            row = self._connection.execute(
                "SELECT version FROM applied WHERE table_name = ?", (table,)
            ).fetchone()
            return int(row[0]) if row else -1

        return self._mended(look)

    def record(self, table: str, version: int, consumed: Iterable[ConsumedFile]) -> None:
        """Records the files that a commit consumed. Versions in between are read from the log."""
        files = list(consumed)

        def write() -> None:
            with self._connection:
                self._put(table, files)
                moved = self._connection.execute(
                    "UPDATE applied SET version = ? WHERE table_name = ? AND version = ?",
                    (version, table, version - 1),
                )
            if not moved.rowcount and table in self._followed:
                self._follow(table, self._followed[table])

        self._mended(write)

    def remember(self, table: str, consumed: ConsumedFile) -> None:
        """Records an empty file, which is consumed without a commit."""

        def write() -> None:
            with self._connection:
                self._put(table, [consumed])

        self._mended(write)

    def catch_up(self, table: str, stored: StoredTable) -> None:
        """Applies the table's log from the ledger's version on; the whole log if the table was replaced."""
        with self._lock:
            self._followed[table] = stored
            self._mended(lambda: self._follow(table, stored))

    def _follow(self, table: str, stored: StoredTable) -> None:
        with self._connection:
            row = self._connection.execute(
                "SELECT version FROM applied WHERE table_name = ? AND table_id = ?", (table, stored.id)
            ).fetchone()
            if row is None:
                # A table that was deleted and made again has to load its files again.
                self._connection.execute("DELETE FROM consumed WHERE table_name = ?", (table,))
            applied = int(row[0]) if row else -1
            for version, files in stored.consumed_since(applied):
                self._put(table, files)
                applied = version
            self._connection.execute(
                "INSERT OR REPLACE INTO applied VALUES (?, ?, ?)", (table, stored.id, applied)
            )

    def _put(self, table: str, consumed: Iterable[ConsumedFile]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO consumed VALUES (?, ?, ?, ?, ?, ?)",
            [(table, file.name, file.size, file.mtime_ns, file.digest, file.discarded) for file in consumed],
        )

    def _mended(self, work: Callable[[], _Result]) -> _Result:
        """Does the work. If the file is damaged, it rebuilds the file from the logs and retries."""
        with self._lock:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._connection.close()
                self._connection = self._replaced(error)
            for table, stored in self._followed.items():
                self._follow(table, stored)
            return work()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connect(self.path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            return self._replaced(error)

    def _replaced(self, error: sqlite3.DatabaseError) -> sqlite3.Connection:
        """Moves the damaged ledger aside and opens an empty one."""
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        _logger.warning("%s is damaged (%s): moved to %s and rebuilt", self.path, error, aside)
        self.path.rename(aside)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return _connect(self.path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        write_ahead(connection)  # a commit lost in a power failure comes from the table's log again
        connection.executescript(_SCHEMA)
        columns = {column[1] for column in connection.execute("PRAGMA table_info(consumed)")}
        if "discarded" not in columns:  # made by an older version, which discarded nothing
            connection.execute("ALTER TABLE consumed ADD COLUMN discarded INTEGER NOT NULL DEFAULT 0")
        with connection:  # removes nothing: it only checks that the file can be written
            connection.execute("DELETE FROM applied WHERE table_name = ''")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE
