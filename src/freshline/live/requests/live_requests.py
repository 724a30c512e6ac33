"""The open requests of a run, and the kernel's instructions for them."""

from __future__ import annotations

from threading import Lock

from freshline.kernel.core.events import Event, Instruction
from freshline.kernel.requests.events import RequestArrived, RequestWithdrawn
from freshline.kernel.requests.request import AnswerRequest, RejectRequest
from freshline.live.requests.class_counts import ClassCounts
from freshline.live.requests.live_request import LiveRequest
from freshline.live.requests.request_sessions import RequestSessions
from freshline.service.failures import no_answer, rejected, stopping


class LiveRequests:
    """The open requests. Only the driver's thread decides their outcomes.

    Tracks look their request up; a client's thread posts a message.
    """

    def __init__(self, sessions: RequestSessions, counts: ClassCounts) -> None:
        self._sessions = sessions
        self._counts = counts
        self._lock = Lock()  # protects the attributes below
        self._is_closed = False
        self._coming: dict[int, LiveRequest] = {}  # by identity: the driver does not know them yet
        self._open: dict[int, LiveRequest] = {}  # by number
        self._last = 0

    def find(self, number: int) -> LiveRequest | None:
        """The open request of that number. Any thread may call it."""
        with self._lock:
            return self._open.get(number)

    def expect(self, asked: LiveRequest) -> None:
        """Adds a request before its message: its client gets a reply at least when the run stops."""
        with self._lock:
            if self._is_closed:
                raise stopping()
            self._coming[id(asked)] = asked

    def submitted(self, asked: LiveRequest, now: int) -> Event | None:
        with self._lock:
            if self._coming.pop(id(asked), None) is None:
                return None  # its client has left, or the run stops
            if asked.deadline <= now:
                self._counts.unanswered(asked.question.class_name)
                asked.fail(no_answer())
                return None
            self._last += 1
            request = asked.heard(self._last)
            self._open[self._last] = asked
        return RequestArrived(request)

    def withdrawn(self, asked: LiveRequest) -> Event | None:
        """The event of a request whose client has left: its parts are not needed any more."""
        with self._lock:
            self._coming.pop(id(asked), None)  # the message may overtake that of the request
        request = asked.request
        if request is None or self._over(request.number) is None:
            return None
        asked.end(self._sessions)
        self._counts.withdrawn(request.class_name)
        return RequestWithdrawn(request.number, request.class_name)

    def cancel(self, number: int) -> None:
        asked = self.find(number)
        if asked is not None:
            asked.end(self._sessions)

    def carry_out(self, instruction: Instruction) -> bool:
        """Carries out an instruction for a request; returns whether it was one."""
        if isinstance(instruction, RejectRequest):
            asked = self._over(instruction.request.number)
            if asked is not None:
                self._counts.rejected(instruction.request.class_name)
                asked.fail(rejected(instruction.retry_after_us))
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
        if not asked.end(self._sessions) or not instruction.parts_done:
            self._counts.unanswered(request.class_name)
            asked.fail(asked.failure or no_answer())
            return
        self._counts.answered(request, instruction.parts_done)
        asked.answer(instruction.parts_done)

    def _over(self, number: int) -> LiveRequest | None:
        with self._lock:
            return self._open.pop(number, None)

    def close(self) -> None:
        """Ends all requests and cancels their running parts: the run stops."""
        with self._lock:
            self._is_closed = True
            left = [*self._coming.values(), *self._open.values()]
            self._coming, self._open = {}, {}
        for asked in left:
            asked.end(self._sessions)
            asked.fail(stopping())
