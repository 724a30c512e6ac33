"""A request of a run, from its question to its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.base.json_values import plain
from freshline.kernel.core.events import Event
from freshline.kernel.requests.request import Request
from freshline.live.loop.messages import Message, MessageObserver
from freshline.live.requests.request_costs import RequestExtent
from freshline.live.requests.request_sessions import RequestSessions
from freshline.service.failures import ServiceFailure
from freshline.service.questions import Question
from freshline.spark.answering.request_run import PartCancelled, PreparedRequest, RequestAnswer, RequestRun
from freshline.sql.request_sql import RequestRefused
from freshline.storage.delta.read_table import ReadTable

if TYPE_CHECKING:
    from freshline.live.requests.live_requests import LiveRequests


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """In which parts a request is read."""

    prepared: PreparedRequest
    extent: RequestExtent
    sizes: tuple[int, ...]  # slices, by part
    parts_us: tuple[int, ...]  # what parts are expected to cost


class LiveRequest:
    """What tracks, the driver and the client that waits share of a request.

    The service's threads submit it, wait for `reply`, write its answer out, and drop it
    (`service.running_warehouse`). The session that it is read in is its own, from its first part until it is
    over and no part runs.
    """

    def __init__(
        self,
        question: Question,
        prepare: Callable[[Question], ReadPlan],
        requests: LiveRequests,
        post: Callable[[Message], None],
        now: Clock = clock,
    ) -> None:
        self.question = question
        self._prepare = prepare
        self._requests = requests
        self._post = post
        self._clock = now
        self.reply: Future[None] = Future()  # done once there is an answer; or with a `ServiceFailure`
        self.request: Request | None = None  # once the kernel has heard of it
        self.failure: ServiceFailure | None = None  # why there is no answer, where that is known
        self.attempts = 0  # that failed
        self._plan: ReadPlan | None = None
        self._answer: RequestAnswer | None = None
        self._parts_done = 0
        self._lock = Lock()  # over what follows
        self._is_submitted = False
        self._is_dropped = False
        self._run: RequestRun | None = None
        self._is_over = False
        self._is_reading = False
        self._lent: Any = None

    # -- for the client that waits -----------------------------------------------------------------------

    def submit(self) -> None:
        """Reads the question, and tells the driver. `ServiceFailure` where it cannot be asked."""
        with self._lock:
            if self._is_dropped:
                return
        self._plan = self._prepare(self.question)
        with self._lock:
            if self._is_dropped:
                return
            self._requests.expect(self)
            self._is_submitted = True
        self._post(RequestSubmitted(self._requests, self))

    def drop(self) -> None:
        """The client has gone. Of a request that was answered there is nothing to be said."""
        with self._lock:
            self._is_dropped = True
            was_submitted, self._is_submitted = self._is_submitted, False
        if was_submitted and not self.reply.done():
            self._post(RequestDropped(self._requests, self))

    def row_count(self) -> int:
        return len(self._put_together().rows)

    def record(self) -> dict[str, Any]:
        answer, request = self._put_together(), self._heard()
        record = {
            "class": request.class_name,
            "columns": list(answer.columns),
            "rows": [plain(row) for row in answer.rows],
            "intervals": [plain(row) for row in answer.intervals],
            "few": [list(row) for row in answer.few],
            "share": float(answer.share),
            "complete": answer.is_complete,
            "parts": {"done": self._parts_done, "of": len(request.parts_us)},
            "error": request.error(self._parts_done),
            "freshness": {name: instant(at) for name, at in answer.freshness.items()},
            "seconds": (self._clock() - request.submitted) / SECOND,
        }
        return record | {"notes": list(answer.notes)} if answer.notes else record

    def table(self) -> pa.Table:
        return self._put_together().table()

    def _put_together(self) -> RequestAnswer:
        """By the thread that writes it out: the driver has no time for it."""
        if self._answer is None:
            assert self._run is not None, "nothing was read"
            try:
                self._answer = self._run.answer()
            except RequestRefused as error:
                raise failure_of(error) from None
        return self._answer

    # -- for the driver and the tracks -------------------------------------------------------------------

    @property
    def plan(self) -> ReadPlan:
        assert self._plan is not None, "it was not submitted"
        return self._plan

    @property
    def deadline(self) -> int:
        return self.question.asked_us + self.question.deadline_us

    def _heard(self) -> Request:
        assert self.request is not None, "the kernel has not heard of it"
        return self.request

    def heard(self, number: int) -> Request:
        """The kernel is told of it, under that number."""
        about, plan = self.question, self.plan
        tables = plan.prepared.sql.tables
        self.request = Request(number, about.class_name, about.asked_us, self.deadline, plan.parts_us, tables)
        return self.request

    def read(self, part: int, sessions: RequestSessions, tables: Mapping[str, ReadTable]) -> None:
        """A part, by the thread of its track. `PartCancelled` where it is over."""
        run = self._run or self._begin(sessions, tables)  # one thread at a time reads
        with self._lock:
            if self._is_over:
                self._tidy(sessions)
                raise PartCancelled("the request is over")
            self._is_reading = True
        try:
            run.read(self.plan.sizes[part])
        finally:
            with self._lock:
                self._is_reading = False
                self._tidy(sessions)

    def _begin(self, sessions: RequestSessions, tables: Mapping[str, ReadTable]) -> RequestRun:
        """Without the lock: a new session takes a while, and the driver may want to end it."""
        session = sessions.take()
        try:
            run = RequestRun(self.plan.prepared, session, tables)
        except BaseException:
            sessions.give_back(session)
            raise
        with self._lock:
            self._lent, self._run = session, run
        return run

    def end(self, sessions: RequestSessions) -> bool:
        """Nothing more is read: a part that runs is cancelled. Whether it was begun."""
        with self._lock:
            self._is_over = True
            run, is_reading = self._run, self._is_reading
            self._tidy(sessions)
        if run is not None and is_reading:
            run.cancel()
        return run is not None

    def _tidy(self, sessions: RequestSessions) -> None:
        if self._is_over and not self._is_reading and self._lent is not None:
            sessions.give_back(self._lent)
            self._lent = None

    def answer(self, parts_done: int) -> None:
        """It is answered by the parts that were read."""
        self._parts_done = parts_done
        self._resolve(None)

    def fail(self, failure: ServiceFailure) -> None:
        """It has no answer."""
        self._resolve(failure)

    def _resolve(self, failure: ServiceFailure | None) -> None:
        if not self.reply.set_running_or_notify_cancel():
            return  # the client has gone
        if failure is None:
            self.reply.set_result(None)
        else:
            self.reply.set_exception(failure)


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """A question, read, for the kernel."""

    requests: LiveRequests
    request: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.submitted(self.request, now)


@dataclass(frozen=True, slots=True)
class RequestDropped:
    """The client has gone."""

    requests: LiveRequests
    request: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.withdrawn(self.request)


def failure_of(refused: RequestRefused) -> ServiceFailure:
    """What is not taken, as the client is told."""
    return ServiceFailure(refused.code, refused.what, refused.remedy)


def instant(at_us: int | None) -> str | None:
    """An instant as JSON has it.

    >>> instant(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    if at_us is None:
        return None
    at: datetime = utc(at_us)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
