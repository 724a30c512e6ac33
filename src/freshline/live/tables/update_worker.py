"""Runs updates on a track: the load and its entry in the records on disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock

from pyspark.sql import SparkSession

from freshline.kernel.tables.update import Update
from freshline.live.tables.file_to_load import files_to_load
from freshline.live.tables.file_trial import FileBlame
from freshline.live.tables.load_records import LoadRecords
from freshline.spark.errors import sentence
from freshline.spark.loading.load import Jump, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.spark.loading.updater import Updater
from freshline.spark.session.session import use_track
from freshline.spark.session.task_counts import TaskCounts
from freshline.storage.delta.commits import TableTaken

_logger = logging.getLogger(__name__)


class UpdateRunner:
    """Runs loads and enters them in the records, for all tracks."""

    def __init__(
        self, updater: Updater, books: LoadRecords, locks: Mapping[str, Lock], busy: Callable[[], int]
    ) -> None:
        self._updater = updater
        self._busy = busy  # how many tracks are, with that of the load
        self._books = books
        self._locks = locks  # by table: housekeeping and updates take turns
        self.counts = TaskCounts()

    def run(self, session: SparkSession, load: Load) -> LoadResult:
        started, busy = time.perf_counter_ns(), self._busy()
        with self._locks[load.table]:
            update = self._updater.run(session, load)
        duration_us, busy = (time.perf_counter_ns() - started) // 1_000, min(busy, self._busy())
        tasks = self.counts.of(session, load.table) if update.computed else 0
        self._books.enter(load, update, duration_us, busy, tasks)
        return update


class SparkWorker:
    """Runs the loads of one track, in a session of its own."""

    def __init__(
        self, session: SparkSession, pool: str, track: int, updates: UpdateRunner, bad_files: FileBlame
    ) -> None:
        self._session = session.newSession()
        self._updates = updates
        self._bad_files = bad_files
        use_track(session, pool, track)
        updates.counts.begin(session)

    def run(self, job: Update) -> LoadResult | None:
        """The result of an update; None if none of its files could be loaded."""
        return self.load(load_of(job))

    def load(self, load: Load) -> LoadResult | None:
        """The result of a load; None if no file could be loaded and the files are at fault.

        Bad files are quarantined before the rest is committed. If something fails in between, nothing is
        loaded, and the retry loads the remaining files.
        """
        try:
            return self._updates.run(self._session, load)
        except TableTaken:
            raise  # no fault of files: another runner writes the table
        except Exception as error:  # a file can make Spark raise any error
            if not self._bad_files.may_be_why(load, error):
                raise
            found = self._bad_files.judge(self._session, load, error)
        self._bad_files.put_aside(load, found.bad)
        rest = [file for file in load.files if file not in found.bad and file not in found.left]
        if len(rest) == len(load.files):
            return self._one_by_one(load)
        update = self._updates.run(self._session, load.only(rest)) if rest else None
        self._bad_files.leave(load, found.left)
        return update

    def _one_by_one(self, load: Load) -> LoadResult:
        """Loads files one by one that fail only together. If one fails, it and the rest are left."""
        updates: list[LoadResult] = []
        for number, file in enumerate(load.files):
            after = updates[-1].freshness if updates else load.after
            alone = replace(load, after=after).only([file])
            try:
                updates.append(self._updates.run(self._session, alone))
            except TableTaken:
                raise
            except Exception as error:  # the commits so far stand, so the load has not failed
                if not updates:
                    raise
                _logger.warning("of %s, whose files are loaded alone: %s", load.table, sentence(error))
                self._bad_files.leave(load, load.files[number:])
                break
        return _together(updates)


def load_of(job: Update) -> Load:
    jump = None
    if job.jump_to > job.loaded_to:
        near = job.loaded_to + job.task.period_us
        jump = Jump(job.jump_to, near, partial(job.task.intake.jumped, job))
    return Load(
        job.task.name,
        job.number,
        job.loaded_from,
        job.loaded_to,
        files_to_load(job.files),
        job.task.empty,
        jump,
        job.start,
    )


def _together(updates: Sequence[LoadResult]) -> LoadResult:
    return replace(
        updates[-1],
        rows=sum(update.rows for update in updates),
        rows_late=sum(update.rows_late for update in updates),
        rows_shed=sum(update.rows_shed for update in updates),
        computed=any(update.computed for update in updates),
        consumed=tuple(consumed for update in updates for consumed in update.consumed),
    )
