"""Compaction, checkpoints and vacuum, in idle time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from freshline.definitions.duration import HOUR, MINUTE, SECOND
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import READY, RUNNING
from freshline.live.trouble import sentence
from freshline.storage.delta import StoredTable
from freshline.storage.ledger import Ledger

# A commit takes longer the more live files there are, and a reader opens each of them.
_SMALL_FILES_MAX = 40
_SMALL_BYTES = 8 << 20
_TARGET_BYTES = 64 << 20
_COMMITS_PER_CHECKPOINT = 50
_VACUUM_EVERY_US = HOUR
# Never below the longest job: a running one's files are not in the log yet.
_ORPHANS_OLDER_THAN = timedelta(hours=6)
_BACK_OFF_US = MINUTE
_BACK_OFF_US_MAX = HOUR


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What keeps failing with a table, how often it has, and when to try again."""

    kind: object  # of the error, without what is different each time, as names of new files are
    attempts: int
    retry_at: int


class Housekeeper:
    """Looks after one table at a time, in a thread of its own, while all tracks are idle.

    It starts only if it expects to be done, by twice what the table took last time, before the kernel wants
    to be woken. What it cannot foresee is a file: an update of the very table it is at then waits for it.
    Where it fails the table is as it was, updates go on, and the other tables have their turn.
    """

    def __init__(
        self,
        tables: Mapping[str, StoredTable],
        locks: Mapping[str, Lock],
        ledger: Ledger,
        note: Callable[[int, str], None],
    ) -> None:
        self._tables = tables
        self._locks = locks
        self._ledger = ledger
        self._note = note  # (instant, text)
        self._thread: threading.Thread | None = None
        self._took_us: dict[str, int] = {}
        self._checkpointed = {name: table.version for name, table in tables.items()}
        self._vacuumed: dict[str, int] = {}
        self._troubles: dict[str, _Trouble] = {}

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
        table, trouble = self._tables[name], self._troubles.get(name)
        return (trouble is None or trouble.retry_at <= now) and (
            _small_files(table) > _SMALL_FILES_MAX
            or table.version - self._checkpointed[name] >= _COMMITS_PER_CHECKPOINT
            or self._is_to_be_vacuumed(name, now)
        )

    def _is_to_be_vacuumed(self, name: str, now: int) -> bool:
        return now - self._vacuumed.setdefault(name, now) >= _VACUUM_EVERY_US

    def _tidy(self, name: str, now: int) -> None:
        started = time.perf_counter_ns()
        try:
            with self._locks[name]:
                self._look_after(name, now)
            self._troubles.pop(name, None)
        except Exception as error:  # a full disk, a damaged file, another writer
            self._failed(name, error, now)
        self._took_us[name] = (time.perf_counter_ns() - started) // 1_000

    def _look_after(self, name: str, now: int) -> None:
        table = self._tables[name]
        # First what makes room: where the disk is full nothing else can be done.
        if self._is_to_be_vacuumed(name, now):
            table.vacuum(_ORPHANS_OLDER_THAN)
            self._vacuumed[name] = now
        if _small_files(table) > _SMALL_FILES_MAX:
            table.compact(_SMALL_BYTES, _TARGET_BYTES)
        table.checkpoint()
        self._checkpointed[name] = table.version
        table.clean_log(self._ledger.applied(name))

    def _failed(self, name: str, error: Exception, now: int) -> None:
        """Tells of it once, not at every attempt, and leaves the table alone for ever longer."""
        before, kind = self._troubles.get(name), (type(error), getattr(error, "errno", None))
        attempts = 1 if before is None else before.attempts + 1
        back_off_us = min(_BACK_OFF_US_MAX, _BACK_OFF_US << min(attempts - 1, 20))
        self._troubles[name] = _Trouble(kind, attempts, now + back_off_us)
        if before is None or before.kind != kind:
            self._note(now, f"{name}: housekeeping failed: {sentence(error)}")


def _small_files(table: StoredTable) -> int:
    return sum(file.size < _SMALL_BYTES for file in table.files)
