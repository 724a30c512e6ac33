"""Iterations of queries on Spark: part by part on their track, within their budgets; what their ends mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from pyspark.sql import SparkSession

from freshline.costs.iterations import PastPart
from freshline.definitions.queries import Query
from freshline.definitions.slices import SLICES
from freshline.kernel.events import Event
from freshline.live.clock import Clock, clock
from freshline.live.messages import Ended
from freshline.live.pacing import Pacing
from freshline.live.query_book import QueryBook
from freshline.live.results import Answer, Found, Results
from freshline.live.trouble import SparkEnded, sentence
from freshline.queries.events import Answered
from freshline.queries.iteration import Iteration


class Reading(Protocol):
    """A query's window, of which some slices are read."""

    def part(self, slices: Sequence[int]) -> int:
        """Reads these slices, in one Spark job. How many rows that were."""

    def answer(self) -> Found:
        """What the slices that were read come to."""


Read = Callable[[SparkSession, Query, int, int], Reading]  # the window (from, to]
Keep = Callable[[Query, Iteration, Answer], None]  # in the query's own table


@dataclass(frozen=True, slots=True)
class Done:
    """What an iteration did."""

    answer: Answer
    ran_us: int  # without what it was put aside for
    known: bool  # whether it was known what its parts would cost


@dataclass(frozen=True, slots=True)
class Answering:
    """What all tracks answer queries with."""

    read: Read
    keep: Keep
    book: QueryBook
    results: Results


class IterationWorker:
    """A track's own session, in which it answers queries."""

    def __init__(
        self, session: SparkSession, pool: str, track: int, answering: Answering, now: Clock = clock
    ) -> None:
        self._session = session.newSession()
        self._answering = answering
        self._clock = now
        self._random = Random()
        context = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", pool)
        context.setJobGroup(f"track-{track}", f"Freshline, track {track}", interruptOnCancel=True)

    def run(self, job: Iteration) -> Generator[None, None, Done]:
        """Each `next` reads some slices; the last one puts them together."""
        asked, book = job.task.asked, self._answering.book
        query, fitted = book.query(asked), book.fitted(asked)
        pacing = Pacing(
            job.number, job.budget_us, job.keep, asked.part_us, fitted, book.rows_per_slice(asked)
        )
        began, lap = self._clock(), _Lap()
        reading = self._answering.read(self._session, query, job.window_from, job.window_to)
        pacing.rested(lap.us())
        # From one that is drawn anew, around the ring: a fixed prefix would be the same keys for ever.
        first = self._random.randrange(SLICES)
        while (slices := pacing.next_slices()) > 0:
            rows = reading.part([(first + pacing.read + each) % SLICES for each in range(slices)])
            pacing.took(began, slices, rows, lap.us())
            yield
            lap.us()  # it may have been put aside
        answer = self._answer(query, job, reading, pacing)
        pacing.rested(lap.us())
        book.enter(asked, [*pacing.parts, PastPart(began, pacing.rest_us, 0, len(answer.rows))])
        return Done(answer, pacing.spent_us, fitted is not None)

    def _answer(self, query: Query, job: Iteration, reading: Reading, pacing: Pacing) -> Answer:
        found = reading.answer() if pacing.read else Found(())  # a budget that allows for no slice at all
        answer = Answer(
            query=query.name,
            window_us=(job.window_from, job.window_to),
            released_us=job.release,
            deadline_us=job.deadline,
            finished_us=self._clock(),
            keep=pacing.read / SLICES,
            rows_seen=pacing.rows,
            rows=found.rows,
            estimates=found.estimates,
        )
        self._answering.results.write(answer)
        if query.into is not None:
            self._answering.keep(query, job, answer)
        return answer


class _Lap:
    """The time since it was asked last."""

    def __init__(self) -> None:
        self._at = time.perf_counter_ns()

    def us(self) -> int:
        before, self._at = self._at, time.perf_counter_ns()
        return (self._at - before) // 1_000


class Watcher(Protocol):
    """Who hears how iterations ended, in the driver's thread."""

    def answered(self, job: Iteration, done: Done, now: int) -> None: ...

    def failed(self, job: Iteration, reason: str, now: int) -> None: ...


class IterationJudge:
    """Judges how iterations ended. One that failed is over: the next is due soon, and others wait."""

    def __init__(self, watcher: Watcher, stop: Callable[[str], None]) -> None:
        self._watcher = watcher
        self._stop = stop  # for what no other attempt helps with

    def judge(self, ended: Ended, now: int) -> Event:
        job: Iteration = ended.job
        outcome = ended.outcome
        if isinstance(outcome, BaseException):
            self._watcher.failed(job, sentence(outcome), now)
            if isinstance(outcome, SparkEnded):
                self._stop(str(outcome))
        else:
            assert isinstance(outcome, Done)
            self._watcher.answered(job, outcome, now)
        return Answered(job)
