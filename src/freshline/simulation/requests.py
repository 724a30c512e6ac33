"""Simulated requests: when they come, what their parts cost, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from freshline.kernel.core.events import Event
from freshline.kernel.core.timers import NEVER
from freshline.kernel.requests.events import PartDone, PartLost, RequestArrived
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.simulation.kind import SimulatedKind

if TYPE_CHECKING:
    from freshline.simulation.driver import SimulatedDriver


class ExpectedRequest(NamedTuple):
    """A request that is to come, and what its parts will take."""

    request: Request
    actual_us: Sequence[int]


class RequestWatch(Protocol):
    """Is told what becomes of requests."""

    def submitted(self, request: Request) -> None: ...

    def started(self, now: int, job: RequestPart) -> None: ...

    def ended(self, now: int, job: RequestPart) -> None: ...

    def answered(self, now: int, answer: AnswerRequest) -> None: ...

    def rejected(self, now: int, reject: RejectRequest) -> None: ...


class SimulatedRequests(SimulatedKind[RequestPart]):
    """The kind of job that classes have. A part that is cancelled ends at once."""

    job = RequestPart

    def __init__(self, coming: Iterator[ExpectedRequest], watch: RequestWatch) -> None:
        self.listeners = {AnswerRequest: self._answered, RejectRequest: self._rejected}
        self._coming = coming
        self._watch = watch
        self._actual_us: dict[int, Sequence[int]] = {}  # by request that is not over
        self._tell: Callable[[int, Callable[[int], Event]], None]
        self._next: ExpectedRequest | None = None

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        """The driver that tells the kernel of them."""
        self._tell = driver.tell
        self._expect()

    def cost_us(self, job: RequestPart) -> int:
        self._watch.started(job.start, job)
        return self._actual_us[job.pending.request.number][job.part]

    def ended(self, now: int, job: RequestPart) -> Event:
        self._watch.ended(now, job)
        return PartLost(job) if job.pending.over else PartDone(job, now - job.start)

    def _expect(self) -> None:
        self._next = next(self._coming, None)
        if self._next is not None:
            self._tell(self._next.request.submitted, self._arrives)

    def _arrives(self, now: int) -> Event:
        assert self._next is not None
        request, actual_us = self._next
        self._actual_us[request.number] = actual_us
        self._watch.submitted(request)
        self._expect()
        return RequestArrived(request)

    def _answered(self, now: int, answer: AnswerRequest) -> None:
        del self._actual_us[answer.request.number]
        self._watch.answered(now, answer)

    def _rejected(self, now: int, reject: RejectRequest) -> None:
        del self._actual_us[reject.request.number]
        self._watch.rejected(now, reject)
