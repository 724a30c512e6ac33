"""Compaction, checkpoints and vacuum, in idle time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from threading import Lock

from freshline.definitions.duration import HOUR, SECOND
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import READY, RUNNING
from freshline.storage.delta import StoredTable, TableTaken
from freshline.storage.ledger import Ledger

# A commit takes longer the more live files there are, and a reader opens each of them.
_SMALL_FILES_MAX = 40
_SMALL_BYTES = 8 << 20
_TARGET_BYTES = 64 << 20
_COMMITS_PER_CHECKPOINT = 50
_VACUUM_EVERY_US = HOUR
# Never below the longest job: a running one's files are not in the log yet.
_ORPHANS_OLDER_THAN = timedelta(hours=6)


class Housekeeper:
    """Looks after one table at a time, in a thread of its own, while all tracks are idle.

    It starts only if it expects to be done, by twice what the table took last time, before the kernel wants
    to be woken. What it cannot foresee is a file: an update of the very table it is at then waits for it.
    """

    def __init__(self, tables: Mapping[str, StoredTable], locks: Mapping[str, Lock], ledger: Ledger) -> None:
        self._tables = tables
        self._locks = locks
        self._ledger = ledger
        self._thread: threading.Thread | None = None
        self._took_us: dict[str, int] = {}
        self._checkpointed = {name: table.version for name, table in tables.items()}
        self._vacuumed: dict[str, int] = {}

    def consider(self, now: int, kernel: Kernel) -> None:
        """Called by the driver now and then."""
        if self._thread is not None and self._thread.is_alive():
            return
        if any(task.state in (READY, RUNNING) for task in kernel.tasks):
            return
        for name in self._tables:
            if self._needs(name, now) and now + 2 * self._took_us.get(name, SECOND // 2) < kernel.wake_at:
                self._thread = threading.Thread(
                    target=self._tidy, args=(name, now), name="housekeeping", daemon=True
                )
                self._thread.start()
                return

    def finish(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _needs(self, name: str, now: int) -> bool:
        table = self._tables[name]
        return (
            _small_files(table) > _SMALL_FILES_MAX
            or table.version - self._checkpointed[name] >= _COMMITS_PER_CHECKPOINT
            or now - self._vacuumed.setdefault(name, now) >= _VACUUM_EVERY_US
        )

    def _tidy(self, name: str, now: int) -> None:
        table = self._tables[name]
        started = time.perf_counter_ns()
        with self._locks[name]:
            try:
                if _small_files(table) > _SMALL_FILES_MAX:
                    table.compact(_SMALL_BYTES, _TARGET_BYTES)
                table.checkpoint()
                self._checkpointed[name] = table.version
                table.clean_log(self._ledger.applied(name))
                if now - self._vacuumed[name] >= _VACUUM_EVERY_US:
                    table.vacuum(_ORPHANS_OLDER_THAN)
                    self._vacuumed[name] = now
            except TableTaken:
                pass  # the next update finds out, and says so
        self._took_us[name] = (time.perf_counter_ns() - started) // 1_000


def _small_files(table: StoredTable) -> int:
    return sum(file.size < _SMALL_BYTES for file in table.files)
