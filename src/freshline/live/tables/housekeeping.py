"""Housekeeping of tables: compaction, checkpoints, vacuum and the clean-up of logs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Lock

from freshline.base.back_off import back_off_us
from freshline.base.duration import HOUR, MINUTE, SECOND
from freshline.base.free_memory import give_back
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import READY, RUNNING
from freshline.spark.errors import sentence
from freshline.storage.control.sqlite_wal import fold
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable

# More live files make commits slower, and a reader opens each of them.
_SMALL_FILES_MAX = 40
_SMALL_BYTES = 8 << 20
_TARGET_BYTES = 64 << 20
_COMMITS_PER_CHECKPOINT = 50
# A log is cut this often within its history, so that each cut is small.
_CUTS_PER_HISTORY = 24
_CUT_EVERY_LEAST_US, _CUT_EVERY_MOST_US = MINUTE, HOUR
# The urgency of a chore in a warehouse whose tracks are never all idle, and in one with waiting jobs:
# otherwise its files would become more and more.
_PATIENCE = 3
_CROWDED_PATIENCE = 4
_FOLD_EVERY_US = MINUTE
_VACUUM_EVERY_US = HOUR
# More than the longest job takes: the files of a running job are not in the log yet.
_ORPHANS_OLDER_THAN = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table for housekeeping."""

    table: StoredTable
    lock: Lock  # writers and housekeeping take turns
    writer: str  # the task that adds to it
    log_taken: Callable[[], int]  # the version up to which this run does not need its log any more


def kept_tables(
    tables: Mapping[str, StoredTable], locks: Mapping[str, Lock], ledger: Ledger
) -> dict[str, KeptTable]:
    """The tables of updates: the ledger needs their logs until it has applied them."""
    return {
        name: KeptTable(table, locks[name], name, partial(ledger.applied, name))
        for name, table in tables.items()
    }


@dataclass(frozen=True, slots=True)
class _Trouble:
    """A repeated failure with a table, its count and the time of the retry."""

    kind: object  # of the error, without parts that differ each time, such as names of new files
    attempts: int
    retry_at: int


@dataclass(frozen=True, slots=True)
class _Chore:
    """A piece of work for a table."""

    name: str
    work: Callable[[], None]


class Housekeeper:
    """Does one chore at a time, in a thread of its own.

    Chores that only need the disk run at any time: cleaning logs and checkpoints of SQLite's logs. A vacuum
    takes a processor for a second or two if a history is long, but no job waits for it: one idle track is
    enough, and after a long wait none is needed.

    Chores that need the table wait until all tracks are idle, after a long wait until one is. They start only
    if twice their last duration ends before the kernel's next wake-up; when they are urgent enough they wait
    no more. A file cannot be foreseen: an update of the same table then waits. After a failure the table is
    unchanged, updates go on, and other tables have their turn.
    """

    def __init__(
        self,
        tables: Callable[[], Mapping[str, KeptTable]],
        books: Sequence[Path],
        note: Callable[[int, str], None],
    ) -> None:
        self._tables_now = tables
        self._tables = tables()  # as of the last call of `consider`: tables of answers come later
        self._books = books
        self._note = note  # (instant, text)
        self._thread: threading.Thread | None = None
        self._took_us: dict[str, int] = {}
        self._checkpointed: dict[str, int] = {}  # versions
        self._vacuumed: dict[str, int] = {}
        self._cut_at: dict[str, int] = {}
        self._folded_at: int | None = None
        self._troubles: dict[str, _Trouble] = {}

    def consider(self, now: int, kernel: Kernel) -> None:
        """Starts a chore if one is due. The driver calls it at intervals."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._tables = self._tables_now()
        for name, kept in self._tables.items():
            self._checkpointed.setdefault(name, kept.table.version)
        chore = self._light(now) or self._vacuuming(now, kernel) or self._heavy(now, kernel)
        if chore is not None:
            self._thread = threading.Thread(
                target=self._do, args=(chore, now), name="housekeeping", daemon=True
            )
            self._thread.start()

    def finish(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _light(self, now: int) -> _Chore | None:
        self._folded_at = now if self._folded_at is None else self._folded_at
        if self._books and now - self._folded_at >= _FOLD_EVERY_US:
            self._folded_at = now
            return _Chore("books", self._fold)
        for name, kept in self._tables.items():
            # Also soon after the start: a run may be shorter than the interval.
            due_at = self._cut_at.setdefault(name, now + _CUT_EVERY_LEAST_US)
            if due_at <= now and self._may(f"log of {name}", now):
                part_us = kept.table.history_us // _CUTS_PER_HISTORY
                every_us = min(max(_CUT_EVERY_LEAST_US, part_us), _CUT_EVERY_MOST_US)
                self._cut_at[name] = now + every_us
                return _Chore(f"log of {name}", partial(self._clean, name))
        return None

    def _vacuuming(self, now: int, kernel: Kernel) -> _Chore | None:
        patience = 1 if any(pool.idle for pool in kernel.pools) else _PATIENCE
        for name in self._tables:
            due_at = self._vacuumed.setdefault(name, now) + patience * _VACUUM_EVERY_US
            if due_at <= now and self._may(f"files of {name}", now):
                return _Chore(f"files of {name}", partial(self._vacuum, name, now))
        return None

    def _heavy(self, now: int, kernel: Kernel) -> _Chore | None:
        """The chore of the most urgent table, so that the first table does not get all of the rare turns."""
        busy = {task.name for task in kernel.tasks if task.state == RUNNING}
        waiting = any(task.state == READY for task in kernel.tasks)
        crowded = waiting or not any(pool.idle for pool in kernel.pools)
        patience = _CROWDED_PATIENCE if crowded else _PATIENCE if busy else 1
        urgencies = {
            name: self._urgency(name, kept.table)
            for name, kept in self._tables.items()
            if kept.writer not in busy and self._may(name, now)
        }
        for name in sorted(urgencies, key=urgencies.__getitem__, reverse=True):
            if urgencies[name] < patience:
                return None
            done_by = now + 2 * self._took_us.get(name, SECOND // 2)
            if crowded or done_by < kernel.wake_at:
                return _Chore(name, partial(self._tidy, name))
        return None

    def _may(self, what: str, now: int) -> bool:
        trouble = self._troubles.get(what)
        return trouble is None or trouble.retry_at <= now

    def _urgency(self, name: str, table: StoredTable) -> float:
        """How urgently the table needs a chore; from 1 on it does."""
        commits = table.version - self._checkpointed[name]
        return max(_small_files(table) / (_SMALL_FILES_MAX + 1), commits / _COMMITS_PER_CHECKPOINT)

    def _do(self, chore: _Chore, now: int) -> None:
        started = time.perf_counter_ns()
        try:
            chore.work()
            self._troubles.pop(chore.name, None)
        # The thread's boundary, for a full disk, a damaged file, another writer: the error is reported here.
        except Exception as error:
            self._failed(chore.name, error, now)
        give_back()
        self._took_us[chore.name] = (time.perf_counter_ns() - started) // 1_000

    def _clean(self, name: str) -> None:
        kept = self._tables[name]
        kept.table.clean_log(kept.log_taken())

    def _vacuum(self, name: str, now: int) -> None:
        """Runs a vacuum without the table's lock: its files left the table long ago."""
        self._tables[name].table.vacuum(_ORPHANS_OLDER_THAN)
        self._vacuumed[name] = now

    def _fold(self) -> None:
        for database in self._books:
            fold(database)

    def _tidy(self, name: str) -> None:
        table = self._tables[name].table
        with self._tables[name].lock:
            if _small_files(table) > _SMALL_FILES_MAX:
                table.compact(_SMALL_BYTES, _TARGET_BYTES)
            table.checkpoint()
            self._checkpointed[name] = table.version

    def _failed(self, name: str, error: Exception, now: int) -> None:
        """Reports a failure once, not at every attempt, and retries at ever longer intervals."""
        before, kind = self._troubles.get(name), (type(error), getattr(error, "errno", None))
        attempts = 1 if before is None else before.attempts + 1
        self._troubles[name] = _Trouble(kind, attempts, now + back_off_us(attempts, MINUTE, HOUR))
        if before is None or before.kind != kind:
            self._note(now, f"{name}: housekeeping failed: {sentence(error)}")


def _small_files(table: StoredTable) -> int:
    return sum(file.size < _SMALL_BYTES for file in table.files)
