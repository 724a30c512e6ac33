"""Runs iterations of queries on Spark, part by part within their budgets, and judges their ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from freshline.base.clock import Clock, clock
from freshline.kernel.core.events import Event
from freshline.kernel.queries.events import IterationFinished
from freshline.kernel.queries.iteration import Iteration
from freshline.live.loop.messages import JobEnded
from freshline.live.queries.held_back import held_back_record
from freshline.live.queries.pacing import Pacing
from freshline.live.queries.query_figures import IterationResult
from freshline.live.queries.query_tables import QueryTables
from freshline.live.queries.result_files import ResultFiles
from freshline.live.queries.running_query import running_query
from freshline.planning.costs.iterations import PastPart
from freshline.spark.answering.window_reading import PreparedQuery, WindowReading, session_for_queries
from freshline.spark.errors import SparkEnded, sentence
from freshline.spark.session.session import use_track
from freshline.sql.slices import SLICES


@dataclass(frozen=True, slots=True)
class QueryAnswering:
    """The objects that all tracks share to answer queries."""

    results: ResultFiles
    tables: QueryTables


class IterationWorker:
    """Answers queries on a track, in the track's own session."""

    def __init__(
        self, session: SparkSession, pool: str, track: int, answering: QueryAnswering, now: Clock = clock
    ) -> None:
        self._session = session_for_queries(session)
        self._answering = answering
        self._clock = now
        use_track(session, pool, track)

    def run(self, job: Iteration) -> Generator[None, None, IterationResult]:
        """Each `next` reads some slices; the last one merges them."""
        query = running_query(job.task.asked)
        fitted = query.costs.fitted
        began, lap = self._clock(), _Lap()
        reading = query.prepared.begin(self._session, job.window_to)
        rows_per_slice = reading.rows_in_slices() / SLICES
        part_us, look = query.longest_part_us, query.costs.looks()
        pacing = Pacing(
            job.number, job.budget_us, job.keep, part_us, fitted, rows_per_slice, look, reading.rows_in_none()
        )
        pacing.rested(lap.us())
        while (slices := pacing.next_slices()) > 0:
            reading.read(slices)
            pacing.took(began, slices, reading.rows_of_part(slices), lap.us())
            yield
            lap.us()  # it may have been paused
        finished_us, rows = self._answer(job, query.prepared, reading)
        pacing.rested(lap.us())
        query.costs.enter([*pacing.parts, PastPart(began, pacing.rest_us, 0, rows)])
        keep, is_known = pacing.read / SLICES, fitted is not None
        return IterationResult(keep, finished_us, pacing.spent_us, is_known, pacing.looked)

    def _answer(self, job: Iteration, prepared: PreparedQuery, reading: WindowReading) -> tuple[int, int]:
        """Writes the answer; returns its time and its number of rows."""
        query, outcome = prepared.query, reading.outcome()
        finished_us = self._clock()
        record = outcome.record(query.name, job.release, job.deadline, finished_us)
        self._answering.results.write(query.name, record | held_back_record(job.held_back))
        if query.into is not None:
            self._answering.tables.add(prepared, outcome, job, finished_us)
        return finished_us, len(outcome.answer.rows)


class _Lap:
    """Measures the time since its last call."""

    def __init__(self) -> None:
        self._at = time.perf_counter_ns()

    def us(self) -> int:
        before, self._at = self._at, time.perf_counter_ns()
        return (self._at - before) // 1_000


class IterationListener(Protocol):
    """Receives the ends of iterations, in the driver's thread."""

    def answered(self, job: Iteration, done: IterationResult, now: int) -> None: ...

    def failed(self, job: Iteration, reason: str, now: int) -> None: ...


class IterationJudge:
    """Judges the ends of iterations. A failed one is not retried: the next is due soon, and others wait."""

    def __init__(self, watcher: IterationListener, stop: Callable[[str], None]) -> None:
        self._watcher = watcher
        self._stop = stop  # for errors that no retry helps with

    def judge(self, ended: JobEnded, now: int) -> Event:
        job: Iteration = ended.job
        outcome = ended.outcome
        if isinstance(outcome, BaseException):
            self._watcher.failed(job, sentence(outcome), now)
            if isinstance(outcome, SparkEnded):
                self._stop(str(outcome))
        else:
            assert isinstance(outcome, IterationResult)
            self._watcher.answered(job, outcome, now)
        return IterationFinished(job)
