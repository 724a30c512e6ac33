"""The requests of a run: who asks, what the kernel says of it, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any

from freshline.kernel.core.events import Event, Instruction
from freshline.kernel.requests.events import RequestArrived, RequestWithdrawn
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request
from freshline.live.loop.messages import Message, MessageObserver
from freshline.live.requests.class_counts import ClassCounts
from freshline.live.requests.live_request import LiveRequest
from freshline.live.requests.request_sessions import RequestSessions
from freshline.service.failures import no_answer, rejected, stopping
from freshline.service.questions import Question

Prepare = Callable[[Question, "Future[Any]"], LiveRequest]


class LiveRequests:
    """Knows the requests that are not over. The driver's thread alone says what becomes of one.

    Tracks look their request up; whoever asks posts a message.
    """

    def __init__(self, sessions: RequestSessions, counts: ClassCounts) -> None:
        self._sessions = sessions
        self._counts = counts
        self._lock = Lock()  # over whether it is closed, and who is open
        self._is_closed = False
        self._coming: dict[int, LiveRequest] = {}  # by identity: the driver has yet to hear of them
        self._open: dict[int, LiveRequest] = {}  # by number
        self._last = 0

    def find(self, number: int) -> LiveRequest | None:
        """The request of that number, unless it is over. Any thread."""
        with self._lock:
            return self._open.get(number)

    def expect(self, asked: LiveRequest) -> None:
        """The driver is about to be told of it, and whoever waits is told at least when the run stops."""
        with self._lock:
            if self._is_closed:
                raise stopping()
            self._coming[id(asked)] = asked

    def submitted(self, asked: LiveRequest, now: int) -> Event | None:
        """Somebody asks: what the kernel hears of it."""
        question = asked.question
        deadline = question.asked_us + question.deadline_us
        with self._lock:
            if self._coming.pop(id(asked), None) is None:
                return None  # nobody waits for it, or the run stops
            if deadline <= now:
                self._counts.unanswered(question.class_name)
                asked.resolve(no_answer())
                return None
            self._last += 1
            tables = asked.prepared.sql.tables
            asked.request = Request(
                self._last, question.class_name, question.asked_us, deadline, asked.parts_us, tables
            )
            self._open[self._last] = asked
        return RequestArrived(asked.request)

    def withdrawn(self, asked: LiveRequest) -> Event | None:
        """Nobody waits for it any more: its parts are not worth another moment."""
        with self._lock:
            self._coming.pop(id(asked), None)  # it overtook the question itself
        request = asked.request
        if request is None or self._over(request.number) is None:
            return None
        asked.end(self._sessions)
        self._counts.withdrawn(request.class_name)
        return RequestWithdrawn(request.number, request.class_name)

    def cancel(self, number: int) -> None:
        """The part of it that runs is to end."""
        asked = self.find(number)
        if asked is not None:
            asked.end(self._sessions)

    def carry_out(self, instruction: Instruction) -> bool:
        """What the kernel says of a request. Whether the instruction is of a request."""
        if isinstance(instruction, RejectRequest):
            asked = self._over(instruction.request.number)
            if asked is not None:
                self._counts.rejected(instruction.request.class_name)
                asked.resolve(rejected(instruction.retry_after_us))
        elif isinstance(instruction, AnswerRequest):
            self._answer(instruction)
        else:
            return False
        return True

    def _answer(self, instruction: AnswerRequest) -> None:
        request = instruction.request
        asked = self._over(request.number)
        if asked is None:
            return
        run = asked.end(self._sessions)
        if run is None or not instruction.parts_done:
            self._counts.unanswered(request.class_name)
            asked.resolve(asked.failure or no_answer())
            return
        self._counts.answered(request, instruction.parts_done)
        asked.answer(run, instruction.parts_done)

    def _over(self, number: int) -> LiveRequest | None:
        with self._lock:
            return self._open.pop(number, None)

    def close(self) -> None:
        """The run stops: nobody is answered any more, and parts that run are cancelled."""
        with self._lock:
            self._is_closed = True
            left = [*self._coming.values(), *self._open.values()]
            self._coming, self._open = {}, {}
        for asked in left:
            asked.end(self._sessions)
            asked.resolve(stopping())


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """A question, read, for the kernel."""

    requests: LiveRequests
    asked: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.submitted(self.asked, now)


@dataclass(frozen=True, slots=True)
class RequestDropped:
    """Whoever asked has gone."""

    requests: LiveRequests
    asked: LiveRequest

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.requests.withdrawn(self.asked)


class LiveSubmission:
    """A question on its way, as the service knows it (`service.running_warehouse`)."""

    def __init__(
        self, question: Question, prepare: Prepare, requests: LiveRequests, post: Callable[[Message], None]
    ) -> None:
        self._question = question
        self._prepare = prepare
        self._requests = requests
        self._post = post
        self._lock = Lock()
        self._asked: LiveRequest | None = None
        self._is_dropped = False
        self.reply: Future[Any] = Future()

    def submit(self) -> None:
        """Reads it, and tells the driver."""
        with self._lock:
            if self._is_dropped:
                return
        asked = self._prepare(self._question, self.reply)
        with self._lock:
            if self._is_dropped:
                return
            self._requests.expect(asked)
            self._asked = asked
        self._post(RequestSubmitted(self._requests, asked))

    def drop(self) -> None:
        """Nobody waits any more. Of one that was answered there is nothing to be said."""
        with self._lock:
            self._is_dropped = True
            asked, self._asked = self._asked, None
        if asked is not None and not self.reply.done():
            self._post(RequestDropped(self._requests, asked))
