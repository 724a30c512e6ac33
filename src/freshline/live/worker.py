"""What a track does with a job: the update, and its entry in the books on disk."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from pyspark.sql import SparkSession

from freshline.costs.fit import PastRun
from freshline.definitions.warehouse import Warehouse
from freshline.landing.digest import content_digest
from freshline.live.trial import Trial, part
from freshline.live.trouble import ATTEMPTS_MAX, sentence
from freshline.spark.updater import Committed, Updater
from freshline.storage.delta import TableTaken
from freshline.storage.files import Consumed
from freshline.storage.history import History
from freshline.storage.ledger import Ledger
from freshline.tables.update import Update

_logger = logging.getLogger(__name__)


class Books:
    """Ledger and history, and what becomes of files that are loaded."""

    def __init__(
        self,
        warehouse: Warehouse,
        ledger: Ledger,
        history: History,
        landing: Mapping[str, Path],
        archive: Path,
    ) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._history = history
        self._landing = landing
        self._archive = archive
        self._readers: dict[str, list[str]] = {}
        for table in warehouse.tables.values():
            if table.feed is not None:
                self._readers.setdefault(table.feed, []).append(table.name)

    def enter(self, job: Update, update: Committed, duration_us: int) -> None:
        """A job's commit stands: remember its files and its cost. A crash before this loses nothing.

        Nor does trouble with it: a job that failed after its commit would load its files again.
        """
        table = self._warehouse.tables[job.task.name]
        length_us = 0 if job.task.empty else job.length_us
        run = PastRun(job.start, duration_us, update.rows, length_us, len(job.files))
        with suppress(sqlite3.Error):  # a cost less to learn from
            self._history.record(table.name, run)
        try:
            self._ledger.record(table.name, update.version, update.consumed)
            if table.feed is not None:
                for consumed in update.consumed:
                    self._after_load(table.feed, consumed)
        except (sqlite3.Error, OSError) as error:
            # The ledger reads what it missed from the table's log; a file left in its place is known.
            _logger.warning("after an update of %s: %s", table.name, sentence(error))

    def forget(self, feed: str, seen: Consumed) -> None:
        """A file that is empty, or was loaded before, needs no job: it is done with as if it had had one."""
        self._after_load(feed, seen)

    def _after_load(self, feed: str, loaded: Consumed) -> None:
        action = self._warehouse.feeds[feed].landing.after_load
        path = self._landing[feed] / loaded.name
        # A correction may have taken its place meanwhile: what nobody has loaded stays, and is found.
        if action == "keep" or not _is_there(path, loaded):
            return
        for reader in self._readers[feed]:
            known = self._ledger.find(reader, loaded.name)
            if known is None or known.digest != loaded.digest:
                return  # another table has yet to load it, or has loaded something else
        if action == "delete":
            path.unlink(missing_ok=True)
        else:
            target = self._archive / feed / loaded.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)


class SparkWorker:
    """A track's own session: its views are nobody else's, its jobs run in its pool."""

    def __init__(
        self,
        session: SparkSession,
        pool: str,
        track: int,
        updater: Updater,
        books: Books,
        locks: Mapping[str, Lock],
        attempts: Callable[[str], int],
        trial: Trial,
        put_aside: Callable[[str, str, str], None],
        leave: Callable[[str, str], None],
    ) -> None:
        self._session = session.newSession()
        self._updater = updater
        self._books = books
        self._locks = locks  # by table: housekeeping and updates take turns
        self._attempts = attempts  # by table: how often its present job has failed already
        self._trial = trial
        self._put_aside = put_aside  # (table, file's name, reason)
        self._leave = leave  # (table, file's name): it is to be looked for again
        context = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", pool)
        context.setJobGroup(f"track-{track}", f"Freshline, track {track}", interruptOnCancel=True)

    def run(self, job: Update) -> Committed | None:
        """The update; None where none of the job's files could be loaded, and that is the files' doing.

        Files at fault are put aside before the rest is committed: whatever fails in between, the job has done
        nothing, and its files that are still there are loaded by the next attempt.
        """
        try:
            return self._update(job)
        except TableTaken:
            raise  # nothing to find out: it is somebody else's
        except Exception as error:
            if not job.files or self._attempts(job.task.name) + 1 < ATTEMPTS_MAX:
                raise
            verdict = self._trial.judge(self._session, job, error)
        for file, reason in verdict.bad.items():
            self._put_aside(job.task.name, str(file.name), reason)
        rest = [file for file in job.files if file not in verdict.bad and file not in verdict.left]
        if len(rest) == len(job.files):
            return self._one_by_one(job)
        update = self._update(part(job, rest)) if rest else None
        for file in verdict.left:
            self._leave(job.task.name, str(file.name))
        return update

    def _one_by_one(self, job: Update) -> Committed:
        """Loads files that fail only together. If one fails after all, it and the rest are left for later."""
        updates: list[Committed] = []
        for number, file in enumerate(job.files):
            alone = part(job, [file])
            if updates:
                alone.loaded_from = updates[-1].freshness
                alone.loaded_to = max(alone.loaded_from, file.timestamp)
            try:
                updates.append(self._update(alone))
            except TableTaken:
                raise
            except Exception as error:
                if not updates:
                    raise
                _logger.warning("of %s, whose files are loaded alone: %s", job.task.name, sentence(error))
                for later in job.files[number:]:
                    self._leave(job.task.name, str(later.name))
                break
        return _together(updates)

    def _update(self, job: Update) -> Committed:
        started = time.perf_counter_ns()
        with self._locks[job.task.name]:
            update = self._updater.run(self._session, job)
        self._books.enter(job, update, (time.perf_counter_ns() - started) // 1_000)
        return update


def _is_there(path: Path, file: Consumed) -> bool:
    """Whether a file is in its place, as it was."""
    try:
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) == (file.size, file.mtime_ns):
            return True
        return found.st_size == file.size and content_digest(path) == file.digest
    except FileNotFoundError:
        return False


def _together(updates: Sequence[Committed]) -> Committed:
    return replace(
        updates[-1],
        rows=sum(update.rows for update in updates),
        rows_late=sum(update.rows_late for update in updates),
        consumed=tuple(consumed for update in updates for consumed in update.consumed),
    )
