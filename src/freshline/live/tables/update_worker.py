"""What a track does with a job: the update, and its entry in the books on disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock

from pyspark.sql import SparkSession

from freshline.kernel.tables.update import Update
from freshline.live.loop.failures import sentence
from freshline.live.tables.blame_files import FileBlame
from freshline.live.tables.file_trial import part
from freshline.live.tables.load_records import LoadRecords
from freshline.spark.loading.load_result import LoadResult
from freshline.spark.loading.updater import Updater
from freshline.storage.delta.stored_table import TableTaken

_logger = logging.getLogger(__name__)


class UpdateRunner:
    """Runs updates and enters them in the books, for all tracks."""

    def __init__(self, updater: Updater, books: LoadRecords, locks: Mapping[str, Lock]) -> None:
        self._updater = updater
        self._books = books
        self._locks = locks  # by table: housekeeping and updates take turns

    def run(self, session: SparkSession, job: Update) -> LoadResult:
        started = time.perf_counter_ns()
        with self._locks[job.task.name]:
            update = self._updater.run(session, job)
        self._books.enter(job, update, (time.perf_counter_ns() - started) // 1_000)
        return update


class SparkWorker:
    """A track's own session: its views are nobody else's, its jobs run in its pool."""

    def __init__(
        self, session: SparkSession, pool: str, track: int, updates: UpdateRunner, bad_files: FileBlame
    ) -> None:
        self._session = session.newSession()
        self._updates = updates
        self._bad_files = bad_files
        context = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", pool)
        context.setJobGroup(f"track-{track}", f"Freshline, track {track}", interruptOnCancel=True)

    def run(self, job: Update) -> LoadResult | None:
        """The update; None where none of the job's files could be loaded, and that is the files' doing.

        Files at fault are put aside before the rest is committed: whatever fails in between, the job has done
        nothing, and its files that are still there are loaded by the next attempt.
        """
        try:
            return self._updates.run(self._session, job)
        except TableTaken:
            raise  # nothing to find out: it is somebody else's
        except Exception as error:  # what a file can do to Spark has no end of names
            if not self._bad_files.may_be_why(job):
                raise
            found = self._bad_files.judge(self._session, job, error)
        self._bad_files.put_aside(job, found.bad)
        rest = [file for file in job.files if file not in found.bad and file not in found.left]
        if len(rest) == len(job.files):
            return self._one_by_one(job)
        update = self._updates.run(self._session, part(job, rest)) if rest else None
        self._bad_files.leave(job, found.left)
        return update

    def _one_by_one(self, job: Update) -> LoadResult:
        """Loads files that fail only together. If one fails after all, it and the rest are left for later."""
        updates: list[LoadResult] = []
        for number, file in enumerate(job.files):
            alone = part(job, [file])
            if updates:
                alone.loaded_from = updates[-1].freshness
                alone.loaded_to = max(alone.loaded_from, file.timestamp)
            try:
                updates.append(self._updates.run(self._session, alone))
            except TableTaken:
                raise
            except Exception as error:  # whatever it is, what is committed stands, and the job has not failed
                if not updates:
                    raise
                _logger.warning("of %s, whose files are loaded alone: %s", job.task.name, sentence(error))
                self._bad_files.leave(job, job.files[number:])
                break
        return _together(updates)


def _together(updates: Sequence[LoadResult]) -> LoadResult:
    return replace(
        updates[-1],
        rows=sum(update.rows for update in updates),
        rows_late=sum(update.rows_late for update in updates),
        rows_shed=sum(update.rows_shed for update in updates),
        computed=any(update.computed for update in updates),
        consumed=tuple(consumed for update in updates for consumed in update.consumed),
    )
