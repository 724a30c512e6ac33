"""A request of a run, from the question to the answer."""

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
    """The parts in which a request is read."""

    prepared: PreparedRequest
    extent: RequestExtent
    sizes: tuple[int, ...]  # slices, by part
    parts_us: tuple[int, ...]  # the expected costs


class LiveRequest:
    """The state of a request that tracks, the driver and the waiting client share.

    The service's threads submit it, wait for `reply`, write its answer and drop it
    (`service.running_warehouse`). It has a session of its own, from its first part until it has ended and no
    part runs.
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
        self.reply: Future[None] = Future()  # done with the answer, or with a `ServiceFailure`
        self.request: Request | None = None  # set once the kernel knows it
        self.failure: ServiceFailure | None = None  # why there is no answer, if known
        self.attempts = 0  # failed ones
        self._plan: ReadPlan | None = None
        self._answer: RequestAnswer | None = None
        self._parts_done = 0
        self._lock = Lock()  # protects the attributes below
        self._is_submitted = False
        self._is_dropped = False
        self._run: RequestRun | None = None
        self._is_over = False
        self._is_reading = False
        self._lent: Any = None

    # -- for the waiting client --------------------------------------------------------------------------

    def submit(self) -> None:
        """Reads the question and passes it to the driver. `ServiceFailure` if it cannot be answered."""
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
        """Withdraws the request: its client has left. Does nothing if it was answered."""
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
        """Merges the answer in the thread that writes it: the driver has no time for that."""
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
        """The request for the kernel, with that number."""
        about, plan = self.question, self.plan
        tables = plan.prepared.sql.tables
        self.request = Request(number, about.class_name, about.asked_us, self.deadline, plan.parts_us, tables)
        return self.request

    def read(self, part: int, sessions: RequestSessions, tables: Mapping[str, ReadTable]) -> None:
        """Reads a part in the thread of its track. `PartCancelled` if the request has ended."""
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
        """Begins to read, without the lock: a new session takes a while, and the driver may end it."""
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
        """Ends the reading and cancels a running part; returns whether the reading had begun."""
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
        """Answers it from the parts that were read."""
        self._parts_done = parts_done
        self._resolve(None)

    def fail(self, failure: ServiceFailure) -> None:
        """Ends it without an answer."""
        self._resolve(failure)

    def _resolve(self, failure: ServiceFailure | None) -> None:
        if not self.reply.set_running_or_notify_cancel():
            return  # the client has left
        if failure is None:
            self.reply.set_result(None)
        else:
            self.reply.set_exception(failure)


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """The message with a request for the kernel."""

    requests: LiveRequests
    request: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.submitted(self.request, now)


@dataclass(frozen=True, slots=True)
class RequestDropped:
    """The message that a client has left."""

    requests: LiveRequests
    request: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.withdrawn(self.request)


def failure_of(refused: RequestRefused) -> ServiceFailure:
    """The client's failure for a refused request."""
    return ServiceFailure(refused.code, refused.what, refused.remedy)


def instant(at_us: int | None) -> str | None:
    """An instant as in JSON.

    >>> instant(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    if at_us is None:
        return None
    at: datetime = utc(at_us)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"
