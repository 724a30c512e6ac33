"""A request of a run, from its question to its answer."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from threading import Lock
from typing import Any

import pyarrow as pa

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.kernel.requests.request import Request
from freshline.live.queries.result_files import plain
from freshline.live.requests.request_costs import RequestExtent
from freshline.live.requests.request_sessions import RequestSessions
from freshline.service.failures import ServiceFailure
from freshline.service.questions import Question
from freshline.spark.answering.request_run import PartCancelled, PreparedRequest, RequestAnswer, RequestRun
from freshline.sql.request_sql import RequestRefused
from freshline.storage.delta.read_table import ReadTable


class LiveRequest:
    """What tracks, the driver and whoever waits share of a request.

    The session that it is read in is its own, from its first part until it is over and no part runs.
    """

    def __init__(
        self,
        question: Question,
        prepared: PreparedRequest,
        extent: RequestExtent,
        sizes: tuple[int, ...],
        parts_us: tuple[int, ...],
        reply: Future[Any],
    ) -> None:
        self.question = question
        self.prepared = prepared
        self.extent = extent
        self.sizes = sizes  # slices, by part
        self.parts_us = parts_us  # what parts are expected to cost
        self.reply = reply
        self.request: Request | None = None  # once the kernel has heard of it
        self.failure: ServiceFailure | None = None  # why there is no answer, where that is known
        self.attempts = 0  # that failed
        self._lock = Lock()  # over what follows
        self._run: RequestRun | None = None
        self._is_over = False
        self._is_reading = False
        self._lent: Any = None

    @property
    def text(self) -> str:
        return self.prepared.sql.text

    def read(self, part: int, sessions: RequestSessions, tables: Mapping[str, ReadTable]) -> None:
        """A part, by the thread of its track. `PartCancelled` where it is over."""
        run = self._run or self._begin(sessions, tables)  # one thread at a time reads
        with self._lock:
            if self._is_over:
                self._tidy(sessions)
                raise PartCancelled("the request is over")
            self._is_reading = True
        try:
            run.read(self.sizes[part])
        finally:
            with self._lock:
                self._is_reading = False
                self._tidy(sessions)

    def _begin(self, sessions: RequestSessions, tables: Mapping[str, ReadTable]) -> RequestRun:
        """Without the lock: a new session takes a while, and the driver may want to end it."""
        session = sessions.take()
        try:
            run = RequestRun(self.prepared, session, tables)
        except BaseException:
            sessions.give_back(session)
            raise
        with self._lock:
            self._lent, self._run = session, run
        return run

    def end(self, sessions: RequestSessions) -> RequestRun | None:
        """Nothing more is read: a part that runs is cancelled. What it has come to, if it was begun."""
        with self._lock:
            self._is_over = True
            run, is_reading = self._run, self._is_reading
            self._tidy(sessions)
        if run is not None and is_reading:
            run.cancel()
        return run

    def _tidy(self, sessions: RequestSessions) -> None:
        if self._is_over and not self._is_reading and self._lent is not None:
            sessions.give_back(self._lent)
            self._lent = None

    def answer(self, run: RequestRun, parts_done: int) -> None:
        """Whoever waits puts it together."""
        assert self.request is not None, "nobody has asked the kernel"
        self.resolve(LiveAnswer(self.request, run, parts_done))

    def resolve(self, answer: LiveAnswer | ServiceFailure) -> None:
        """Tells who waits, if anybody still does."""
        if not self.reply.set_running_or_notify_cancel():
            return
        if isinstance(answer, ServiceFailure):
            self.reply.set_exception(answer)
        else:
            self.reply.set_result(answer)


class LiveAnswer:
    """What was read of a request by its end; put together by the thread that writes it out."""

    def __init__(self, request: Request, run: RequestRun, parts_done: int, now: Clock = clock) -> None:
        self._request = request
        self._run = run
        self._parts_done = parts_done
        self._clock = now
        self._answer: RequestAnswer | None = None

    def _put_together(self) -> RequestAnswer:
        if self._answer is None:
            try:
                self._answer = self._run.answer()
            except RequestRefused as error:
                raise failure_of(error) from None
        return self._answer

    def row_count(self) -> int:
        return len(self._put_together().rows)

    def record(self) -> dict[str, Any]:
        answer, request = self._put_together(), self._request
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


def failure_of(refused: RequestRefused) -> ServiceFailure:
    """What is not taken, as whoever asks is told."""
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
