"""Follows the tables of other nodes: a thread that reports their commits to the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from freshline.base.clock import Clock, clock
from freshline.live.loop.messages import Message
from freshline.live.loop.run_notes import RunNotes
from freshline.spark.errors import sentence
from freshline.storage.delta.followed_table import FollowedTable

LOOK_EVERY_S: Final = 0.05
# A network file system may answer a look from its cache; it does not for a listing of the log.
RELOAD_EVERY_S: Final = 1.0

# A table's new freshness, the arrival of its data and the time of the commit; its freshness in the last
# message and the number of rows since then; whether a commit since then was recovery.
Tell = Callable[[str, int, int | None, int | None, int, int, bool], Message]


class TableFollower:
    """Looks for the next commit of every followed table and posts the new freshness."""

    def __init__(
        self, tables: Mapping[str, FollowedTable], notes: RunNotes, tell: Tell, now: Clock = clock
    ) -> None:
        self._tables = tables
        self._notes = notes
        self._tell = tell
        self._clock = now
        self._told = {name: _Told(table.freshness or 0, _rows(table)) for name, table in tables.items()}
        self._troubles: dict[str, str] = {}  # by table: the last reported failure
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)
        self._post: Callable[[Message], None] = lambda message: None

    def start(self, post: Callable[[Message], None]) -> None:
        self._post = post
        if self._tables:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        reload_at = time.monotonic()
        while not self._stop.wait(LOOK_EVERY_S):
            listing = time.monotonic() >= reload_at
            if listing:
                reload_at = time.monotonic() + RELOAD_EVERY_S
            for name, table in self._tables.items():
                self._look(name, table, listing)

    def _look(self, name: str, table: FollowedTable, listing: bool) -> None:
        try:
            table.look()
            if listing:
                table.reload()
        except Exception as error:  # unreachable, damaged or just cleaned: the next look retries
            if self._troubles.get(name) != (trouble := sentence(error)):
                self._troubles[name] = trouble
                self._notes.note(self._clock(), f"{name}: its log cannot be followed: {trouble}")
            return
        self._troubles.pop(name, None)
        freshness, told = table.freshness, self._told[name]
        if freshness is not None and freshness > told.freshness:
            self._told[name] = _Told(freshness, _rows(table))
            rows = max(0, self._told[name].rows - told.rows)  # a rebuild may leave fewer
            recovery = (table.recovered_to or 0) > told.freshness
            moved = freshness, table.came_at, table.committed_at
            self._post(self._tell(name, *moved, told.freshness, rows, recovery))


class _Told(NamedTuple):
    """A table as of the last message."""

    freshness: int
    rows: int


def _rows(table: FollowedTable) -> int:
    return sum(file.rows for file in table.files)
