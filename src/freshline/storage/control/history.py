"""The durations of finished jobs, kept in SQLite: costs are learned from them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from freshline.base.disk import full_disk
from freshline.base.errors import InputError
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.iterations import PastPart
from freshline.storage.control.sqlite_wal import write_ahead

RUNS_KEPT: Final = 2_000  # per table; older runs say little about today's cost
PARTS_KEPT: Final = 200  # per query; the cost of an answer depends on the current load
# Old rows are deleted in batches, which keeps the file at most a tenth too large.
_BATCH: Final = 200

# Columns that files of earlier versions lack.
_ADDED: Final = ("busy", "tasks")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    started INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    length_us INTEGER NOT NULL,
    files INTEGER NOT NULL,
    busy INTEGER NOT NULL DEFAULT 0,
    tasks INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS runs_by_table ON runs (table_name, id);
CREATE TABLE IF NOT EXISTS parts (
    id INTEGER PRIMARY KEY,
    query TEXT NOT NULL,
    iteration INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    slices INTEGER NOT NULL,
    rows INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS parts_by_query ON parts (query, id);
"""


class History:
    """The newest runs of every table. All threads of a process may share one history.

    With `read_only` a missing file counts as an empty history and is not created. `record` raises
    `sqlite3.Error` if the disk is full or read-only: the run is then not recorded, and nothing else is lost.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}  # by table: how many runs the file has
        self._connection: sqlite3.Connection | None = None
        self._columns: list[str] = []  # those of a run; an older file that is only read has fewer
        if read_only and not path.exists():
            return
        try:
            self._connection = _opened(path, read_only)
            self._columns = [column for column in PastRun._fields if column in self._columns_there()]
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"the history of runs {path} cannot be opened: {full_disk(error) or error}",
                "Give access to it, or move it away: Freshline then learns the costs again",
            ) from error

    def record(self, table: str, run: PastRun) -> None:
        """Records a run. Every so often it deletes the table's oldest runs."""
        with self._lock:
            connection = self._connection
            assert connection is not None, "the history is closed, or was opened to be read only"
            connection.execute(
                "INSERT INTO runs (table_name, started, duration_us, rows, length_us, files, busy, tasks)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (table, *run),
            )
            if table in self._counts:
                self._counts[table] += 1
            else:
                counted = connection.execute("SELECT count(*) FROM runs WHERE table_name = ?", (table,))
                self._counts[table] = counted.fetchone()[0]
            if self._counts[table] >= RUNS_KEPT + _BATCH:
                connection.execute(
                    "DELETE FROM runs WHERE table_name = :table AND id <= (SELECT id FROM runs"
                    " WHERE table_name = :table ORDER BY id DESC LIMIT 1 OFFSET :kept)",
                    {"table": table, "kept": RUNS_KEPT},
                )
                self._counts[table] = RUNS_KEPT

    def runs(self, table: str) -> list[PastRun]:
        """The table's newest runs, oldest first."""
        rows = self._rows(
            f"SELECT {', '.join(self._columns)} FROM runs WHERE table_name = ? ORDER BY id DESC LIMIT ?",
            (table, RUNS_KEPT),
        )
        return [PastRun(*row) for row in reversed(rows)]

    def record_parts(self, query: str, parts: Sequence[PastPart]) -> None:
        """Records an answer's parts and deletes the query's oldest."""
        with self._lock:
            connection = self._connection
            assert connection is not None, "the history is closed, or was opened to be read only"
            connection.executemany(
                "INSERT INTO parts (query, iteration, duration_us, slices, rows) VALUES (?, ?, ?, ?, ?)",
                [(query, *part) for part in parts],
            )
            connection.execute(
                "DELETE FROM parts WHERE query = :query AND id <= (SELECT id FROM parts"
                " WHERE query = :query ORDER BY id DESC LIMIT 1 OFFSET :kept)",
                {"query": query, "kept": PARTS_KEPT},
            )

    def parts(self, query: str) -> list[PastPart]:
        """The parts of the query's newest answers, oldest first."""
        rows = self._rows(
            "SELECT iteration, duration_us, slices, rows FROM parts WHERE query = ? ORDER BY id DESC LIMIT ?",
            (query, PARTS_KEPT),
        )
        return [PastPart._make(row) for row in reversed(rows)]

    def keep_parts(self, kind: str, count: int) -> None:
        """Of the queries whose names begin with `kind`, keeps only the `count` that were answered last."""
        with self._lock:
            connection = self._connection
            assert connection is not None, "the history is closed, or was opened to be read only"
            connection.execute(
                "DELETE FROM parts WHERE query GLOB :kind AND query NOT IN (SELECT query FROM parts"
                " WHERE query GLOB :kind GROUP BY query ORDER BY max(id) DESC LIMIT :count)",
                {"kind": f"{kind}*", "count": count},
            )

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _columns_there(self) -> set[str]:
        return {name for _, name, *_ in self._rows("PRAGMA table_info(runs)", ())}

    def _rows(self, query: str, values: tuple[str | int, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            return [] if self._connection is None else self._connection.execute(query, values).fetchall()


def _opened(path: Path, read_only: bool) -> sqlite3.Connection | None:
    """A connection in which every statement is a transaction; None if nothing was ever recorded."""
    # SQLite's `mode=ro` would leave the helper files of the write-ahead log behind.
    mode = "rw" if read_only else "rwc"
    if not read_only:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        if read_only:
            # A runner that was killed at its start leaves a file without tables.
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'parts'").fetchone() is None:
                connection.close()
                return None
            connection.execute("PRAGMA query_only = ON")
        else:
            write_ahead(connection)  # losing the last runs in a power failure does no harm
            connection.executescript(_SCHEMA)
            for column in _ADDED:
                with suppress(sqlite3.OperationalError):  # it is there
                    connection.execute(f"ALTER TABLE runs ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
