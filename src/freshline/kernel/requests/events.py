"""Events of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from freshline.kernel.core.events import Event, JobEvent, Record
from freshline.kernel.requests.request import Request, RequestPart
from freshline.kernel.requests.service import service_of
from freshline.kernel.requests.task import ClassTask

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


@dataclass(slots=True, eq=False)
class RequestArrived(Event):
    """A client sends a request: `RejectRequest` or, later, `AnswerRequest` follows."""

    word = "requested"
    priority = 1
    request: Request

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.request.class_name)
        assert isinstance(task, ClassTask), f"{task!r} is no class"
        task.requested(self.request, now)

    def record(self) -> Record:
        return self.request.record()

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(Request.from_record(record))


@dataclass(slots=True, eq=False)
class RequestWithdrawn(Event):
    """The client has gone: the request needs no answer, and no instruction about it follows."""

    word = "withdrawn"
    keys = (("number", word), ("class_name", "class"))
    priority = 2  # after the request itself
    number: int
    class_name: str

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.class_name)
        assert isinstance(task, ClassTask), f"{task!r} is no class"
        task.withdrawn(self.number, now)


@dataclass(slots=True, eq=False)
class PartDone(JobEvent):
    """A part of a request has ended, at that cost."""

    word, of = "part_done", RequestPart
    keys = (("cost_us", "cost"),)
    job: RequestPart
    cost_us: int

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.part_done(self.job, self.cost_us, now)


@dataclass(slots=True, eq=False)
class PartLost(JobEvent):
    """A part was cancelled or failed, and had no effect.

    A cancelled request is answered already. A failed part is retried; a hopeless request is answered with
    what is done.
    """

    word, of = "part_lost", RequestPart
    keys = (("hopeless", "hopeless"),)
    job: RequestPart
    hopeless: bool = False

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.part_lost(self.job, self.hopeless, now)


@dataclass(slots=True, eq=False)
class UpdateDiscarded(Event):
    """An update of a table was discarded, since its data changes little; it would have cost `cost_us`."""

    word = "discarded"
    keys = (("table", word), ("cost_us", "cost"))
    priority = 1
    table: str
    cost_us: int

    def take(self, kernel: Kernel, now: int) -> None:
        service = service_of(kernel.task(self.table).pool)
        if service is not None:
            service.discarded(self.cost_us, now)


EVENTS: Final[tuple[type[Event], ...]] = (
    RequestArrived,
    RequestWithdrawn,
    PartDone,
    PartLost,
    UpdateDiscarded,
)
