"""Runs jobs of steps on Spark, and judges their ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from freshline.base.clock import Clock, clock
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.steps.events import StepsCommitted, StepsDropped
from freshline.kernel.steps.job import Instance, StepJob, StepRun
from freshline.live.loop.messages import JobEnded
from freshline.live.loop.run_notes import RunNotes
from freshline.live.nodes.step_figures import NO_ROWS, CommittedStep, StepFigures, rows_of
from freshline.live.tables.file_to_load import files_to_load
from freshline.live.tables.judge import LoadFailures
from freshline.live.tables.update_worker import SparkWorker
from freshline.spark.loading.load import Load
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.stored_table import StoredTable

_logger = logging.getLogger(__name__)


class _Commit(NamedTuple):
    """A step's last commit: its result, instance and time."""

    instance: Instance
    committed: LoadResult
    at: int


class StepWorker:
    """Runs the steps of a job one after the other; each is a load with its own commit.

    A job may fail between two commits. Its commits stand, although the kernel retries the job: the tables
    have their freshness, and for files this object knows the last instance. In the step's figures such a
    commit counts as it was.
    """

    def __init__(
        self,
        worker: SparkWorker,
        tables: Mapping[str, StoredTable],
        outputs: Collection[str],
        now: Clock = clock,
    ) -> None:
        self._worker = worker
        self._tables = tables
        self._outputs = outputs
        self._clock = now
        self._last: dict[str, _Commit] = {}  # by step

    def run(self, job: StepJob) -> tuple[CommittedStep, ...] | None:
        """The committed steps; None if the first step's file could not be loaded and nothing was done."""
        done: list[CommittedStep] = []
        for part in job.parts:
            this = self._do(job, part)
            if this is None:
                return None
            done.append(this)
        return tuple(done)

    def _do(self, job: StepJob, part: StepRun) -> CommittedStep | None:
        load = self._load(job, part)
        if load is not None:
            committed = self._worker.load(load)
            if committed is None:
                return None
            self._last[part.name] = _Commit(part.instance, committed, self._clock())
        last = self._last.get(part.name)
        if last is None or last.instance != part.instance:
            return CommittedStep(part, None, self._clock(), NO_ROWS)
        is_output = part.name in self._outputs
        instants = rows_of(self._tables[part.name], last.committed) if is_output else NO_ROWS
        return CommittedStep(part, last.committed, last.at, instants)

    def _load(self, job: StepJob, part: StepRun) -> Load | None:
        """The load of a step; None if it is already committed."""
        reached = self._tables[part.name].freshness
        loaded_from = max(part.loaded_from, reached or 0)
        if part.files:
            last = self._last.get(part.name)
            done = last is not None and last.instance == part.instance
        else:
            done = reached is not None and reached >= part.loaded_to
        if done:
            return None
        return Load(
            part.name,
            job.number,
            loaded_from,
            max(loaded_from, part.loaded_to),
            files_to_load(part.files),
            is_first=reached is None,
            start=self._clock(),
            came_at=part.instance.came_at,
            recovery=part.instance.recovery,
        )


class StepJudge:
    """Judges the ends of jobs of steps. Only the driver's thread uses it."""

    def __init__(self, book: StepFigures, failures: LoadFailures, notes: RunNotes) -> None:
        self._book = book
        self._failures = failures
        self._notes = notes
        self.on_loaded: Callable[[str, Sequence[str]], None] | None = None  # (step, names of files)
        # (step, from, to, rows)
        self.on_committed: Callable[[str, int, int, int], None] | None = None

    def judge(self, ended: JobEnded, now: int) -> Event:
        job: StepJob = ended.job
        outcome: Any = ended.outcome
        if isinstance(outcome, BaseException):
            return JobFailed(job, self._failures.failed(job.task.name, outcome, now))
        self._failures.over(job.task.name)
        for part in job.parts:
            if self.on_loaded is not None and part.files:
                self.on_loaded(part.name, [str(file.name) for file in part.files])
        if outcome is None:  # its file was quarantined; all steps keep their freshness
            return StepsDropped(job)
        began = job.start
        for done in outcome:
            warning = self._book.done(done)
            if warning is not None:
                self._notes.note(now, warning)
                _logger.warning("%s", warning)
            if self.on_committed is not None and done.committed is not None:
                committed: LoadResult = done.committed
                self.on_committed(done.part.name, done.part.loaded_from, committed.freshness, committed.rows)
            if done.at >= began:  # otherwise an earlier attempt committed it
                if not done.part.instance.recovery:  # that may have several files
                    planned_us = done.part.step.terms.cost_us
                    self._notes.took(done.part.name, done.at - began, planned_us, done.at)
                began = done.at
        return StepsCommitted(job, _reached(outcome))


def _reached(outcome: Sequence[CommittedStep]) -> int | None:
    """Where a job with several files ended, if before the end of its range: the last were put aside."""
    only = outcome[0]
    if len(only.part.files) < 2 or only.committed is None:
        return None
    if only.committed.freshness >= only.part.loaded_to:
        return None
    reached: int = only.committed.freshness
    return reached
