"""Runs parts of requests on Spark, and judges their ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from freshline.kernel.core.events import Event
from freshline.kernel.requests.events import PartDone, PartLost
from freshline.kernel.requests.request import RequestPart
from freshline.live.loop.messages import JobEnded
from freshline.live.requests.live_request import LiveRequest, failure_of
from freshline.live.requests.live_requests import LiveRequests
from freshline.live.requests.request_costs import RequestCosts
from freshline.live.requests.request_sessions import RequestSessions
from freshline.planning.costs.iterations import PastPart
from freshline.service.failures import ServiceFailure
from freshline.spark.answering.request_run import PartCancelled
from freshline.spark.errors import SparkEnded, is_of_a_row, sentence
from freshline.spark.session.session import track_pool, use_pool
from freshline.sql.request_sql import RequestRefused
from freshline.sql.slices import SLICES
from freshline.storage.delta.read_table import ReadTable

_logger = logging.getLogger(__name__)
# A part that fails without fault of the request is retried once: there is no time for a back-off.
_ATTEMPTS_MAX = 2
# Costs are learned by SQL (`live.requests.request_costs`). A part takes many times as long if Spark has to
# compile. A policy that planned with that cost would admit no request and never learn the true cost.
_OUTLIER = 4


@dataclass(frozen=True, slots=True)
class RequestReading:
    """The objects that all tracks share to answer requests."""

    requests: LiveRequests
    sessions: RequestSessions
    tables: Mapping[str, ReadTable]
    book: RequestCosts


class PartWorker:
    """Reads parts of requests on a track, each in the request's own session."""

    def __init__(self, session: SparkSession, pool: str, track: int, serving: RequestReading) -> None:
        self._serving = serving
        use_pool(session, track_pool(pool, track))

    def run(self, job: RequestPart) -> int:
        """Reads a part; returns its duration in microseconds."""
        serving, request = self._serving, job.request
        asked = serving.requests.find(request.number)
        if asked is None:
            raise PartCancelled("the request is over")
        at = time.perf_counter_ns()
        asked.read(job.part, serving.sessions, serving.tables)
        took_us = (time.perf_counter_ns() - at) // 1_000
        plan = asked.plan
        slices = plan.sizes[job.part]
        part = PastPart(request.submitted, took_us, slices, plan.extent.rows * slices // SLICES)
        serving.book.enter(plan.prepared.sql.text, plan.extent, [part])
        return took_us


class PartJudge:
    """Judges the ends of parts. Only the driver's thread uses it."""

    def __init__(self, requests: LiveRequests, stop: Callable[[str], None]) -> None:
        self._requests = requests
        self._stop = stop  # for errors that no retry helps with

    def judge(self, ended: JobEnded, now: int) -> Event:
        job: RequestPart = ended.job
        outcome = ended.outcome
        if isinstance(outcome, int):
            return PartDone(job, max(1, min(outcome, _OUTLIER * job.estimate_us)))
        assert isinstance(outcome, BaseException), f"{job!r} ended with {outcome!r}"
        if isinstance(outcome, SparkEnded):
            self._stop(str(outcome))
        asked = self._requests.find(job.request.number)
        if isinstance(outcome, PartCancelled) or asked is None:
            return PartLost(job)
        return PartLost(job, self._is_hopeless(asked, outcome))

    def _is_hopeless(self, asked: LiveRequest, error: BaseException) -> bool:
        if isinstance(error, RequestRefused):
            asked.failure = failure_of(error)
            return True
        if is_of_a_row(error):
            what = f"it cannot be computed for some row: {sentence(error).rstrip('.')}"
            asked.failure = ServiceFailure("bad_sql", what, "Mend the SQL")
            return True
        asked.attempts += 1
        _logger.warning("a part of a request of %s failed: %s", asked.question.class_name, sentence(error))
        if asked.attempts < _ATTEMPTS_MAX:
            return False  # the reply if time is up before a retry succeeds
        asked.failure = ServiceFailure(
            "failed", "Spark could not read the tables", "Ask again; see the run's notes"
        )
        return True
