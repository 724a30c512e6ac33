"""Simulated requests: their arrivals, the costs of their parts, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.requests.events import PartDone, PartLost, RequestArrived
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.simulation.kind import SimulatedKind

if TYPE_CHECKING:
    from freshline.simulation.driver import SimulatedDriver


class ExpectedRequest(NamedTuple):
    """A coming request, and the actual costs of its parts."""

    request: Request
    actual_us: Sequence[int]


class RequestWatch:
    """Is called with the outcomes of requests; it overrides what it needs."""

    __slots__ = ()

    def submitted(self, request: Request) -> None: ...

    def started(self, now: int, job: RequestPart) -> None: ...

    def ended(self, now: int, job: RequestPart) -> None: ...

    def answered(self, now: int, answer: AnswerRequest) -> None: ...

    def rejected(self, now: int, reject: RejectRequest) -> None: ...

    def lost(self, request: Request, heard: bool) -> None:
        """The runner crashed while the request was open, or was down when it arrived (not `heard`)."""


class SimulatedRequests(SimulatedKind[RequestPart]):
    """The simulated jobs of classes. A cancelled part ends at once."""

    job = RequestPart

    def __init__(self, coming: Iterator[ExpectedRequest], watch: RequestWatch) -> None:
        self.listeners = {AnswerRequest: self._answered, RejectRequest: self._rejected}
        self._coming = coming
        self._watch = watch
        self._open: dict[int, ExpectedRequest] = {}  # by number
        self._tell: Callable[[int, Callable[[int], Event | None]], None]
        self._next: ExpectedRequest | None = None
        self._down: set[str] = set()  # classes on a node that is down

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        """Schedules requests with that driver."""
        self._tell = driver.tell
        self._expect()

    def cost_us(self, job: RequestPart) -> int:
        self._watch.started(job.start, job)
        return self._open[job.pending.request.number].actual_us[job.part]

    def ended(self, now: int, job: RequestPart) -> Event:
        self._watch.ended(now, job)
        return PartLost(job) if job.pending.over else PartDone(job, now - job.start)

    def crashed(self, now: int) -> None:
        for expected in self._open.values():
            self._watch.lost(expected.request, heard=True)
        self._open.clear()

    def node_crashed(self, now: int, tasks: Collection[str]) -> None:
        for number, expected in list(self._open.items()):
            if expected.request.class_name in tasks:
                self._watch.lost(expected.request, heard=True)
                del self._open[number]
        self._down.update(tasks)

    def node_began(self, kernel: Kernel, tasks: Collection[str]) -> None:
        self._down.difference_update(tasks)

    def _expect(self, now: int = 0) -> None:
        self._next = next(self._coming, None)
        if self._next is not None:
            # Requests that arrive while the runner is down are scheduled for its return.
            self._tell(max(now, self._next.request.submitted), self._arrives)

    def _arrives(self, now: int) -> Event | None:
        expected = self._next
        assert expected is not None
        request = expected.request
        self._watch.submitted(request)
        is_heard = request.submitted == now and request.class_name not in self._down
        if is_heard:
            self._open[request.number] = expected
        else:
            self._watch.lost(request, heard=False)
        self._expect(now)
        return RequestArrived(request) if is_heard else None

    def _answered(self, now: int, answer: AnswerRequest) -> None:
        del self._open[answer.request.number]
        self._watch.answered(now, answer)

    def _rejected(self, now: int, reject: RejectRequest) -> None:
        del self._open[reject.request.number]
        self._watch.rejected(now, reject)
