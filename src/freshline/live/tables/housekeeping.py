"""Compaction, checkpoints, vacuum, and logs that end with their tables' history."""

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

# A commit takes longer the more live files there are, and a reader opens each of them.
_SMALL_FILES_MAX = 40
_SMALL_BYTES = 8 << 20
_TARGET_BYTES = 64 << 20
_COMMITS_PER_CHECKPOINT = 50
# A log is cut after so much of its history, so that each time a small part of it goes.
_CUTS_PER_HISTORY = 24
_CUT_EVERY_LEAST_US, _CUT_EVERY_MOST_US = MINUTE, HOUR
# A warehouse whose tracks are never all idle is looked after when it is so many times as urgent, and one in
# which jobs always wait when it is that urgent: else its files would become more and more.
_PATIENCE = 3
_CROWDED_PATIENCE = 4
_FOLD_EVERY_US = MINUTE
_VACUUM_EVERY_US = HOUR
# Never below the longest job: a running one's files are not in the log yet.
_ORPHANS_OLDER_THAN = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table that is looked after."""

    table: StoredTable
    lock: Lock  # whoever writes and housekeeping take turns
    writer: str  # the task that adds to it
    log_taken: Callable[[], int]  # the version up to which nobody here needs its log any more


def kept_tables(
    tables: Mapping[str, StoredTable], locks: Mapping[str, Lock], ledger: Ledger
) -> dict[str, KeptTable]:
    """The tables that updates add to: the ledger has to have taken what their logs say."""
    return {
        name: KeptTable(table, locks[name], name, partial(ledger.applied, name))
        for name, table in tables.items()
    }


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What keeps failing with a table, how often it has, and when to try again."""

    kind: object  # of the error, without what is different each time, as names of new files are
    attempts: int
    retry_at: int


@dataclass(frozen=True, slots=True)
class _Chore:
    """Something to do, and for whom."""

    name: str
    work: Callable[[], None]


class Housekeeper:
    """Does one thing at a time, in a thread of its own.

    What needs the disk alone is done at any time: cleaning logs, folding the books' write-ahead logs. Vacuum
    takes a processor for a second or two where a history is long, but nobody waits for it: one idle track is
    enough, and after long not even that. What needs the table waits until all tracks are idle, or after long
    until one is, and starts only if it expects to be done, by twice what the table took last time, before the
    kernel wants to be woken; after longer still it waits no more. What it cannot foresee is a file: an update
    of the table it is at then waits for it. Where it fails the table is as it was, updates go on, and the
    other tables have their turn.
    """

    def __init__(
        self,
        tables: Callable[[], Mapping[str, KeptTable]],
        books: Sequence[Path],
        note: Callable[[int, str], None],
    ) -> None:
        self._tables_now = tables
        self._tables = tables()  # as they were when it was considered last: those of answers come later
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
        """Called by the driver now and then."""
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
            # Soon after the start too: a run may be shorter than the time between two.
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
        """The most urgent table: the first would else have all the turns where they are rare."""
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
        """From 1 on the table is in need."""
        commits = table.version - self._checkpointed[name]
        return max(_small_files(table) / (_SMALL_FILES_MAX + 1), commits / _COMMITS_PER_CHECKPOINT)

    def _do(self, chore: _Chore, now: int) -> None:
        started = time.perf_counter_ns()
        try:
            chore.work()
            self._troubles.pop(chore.name, None)
        # The thread's boundary: a full disk, a damaged file, another writer. Nobody else would hear of it.
        except Exception as error:
            self._failed(chore.name, error, now)
        give_back()
        self._took_us[chore.name] = (time.perf_counter_ns() - started) // 1_000

    def _clean(self, name: str) -> None:
        kept = self._tables[name]
        kept.table.clean_log(kept.log_taken())

    def _vacuum(self, name: str, now: int) -> None:
        """Without the table's lock: what it removes has not been the table's for long."""
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
        """Tells of it once, not at every attempt, and leaves it alone for ever longer."""
        before, kind = self._troubles.get(name), (type(error), getattr(error, "errno", None))
        attempts = 1 if before is None else before.attempts + 1
        self._troubles[name] = _Trouble(kind, attempts, now + back_off_us(attempts, MINUTE, HOUR))
        if before is None or before.kind != kind:
            self._note(now, f"{name}: housekeeping failed: {sentence(error)}")


def _small_files(table: StoredTable) -> int:
    return sum(file.size < _SMALL_BYTES for file in table.files)
