"""What happens to requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.requests.request import Request, RequestPart
from freshline.kernel.requests.service import service_of
from freshline.kernel.requests.task import ClassTask

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class RequestArrived(Event):
    """Somebody asks: `Reject` or, later, `Answer` is said of it."""

    __slots__ = ("request",)
    priority: ClassVar[int] = 1

    def __init__(self, request: Request) -> None:
        self.request = request

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.request.class_name)
        assert isinstance(task, ClassTask), f"{task!r} is no class"
        task.requested(self.request, now)

    def record(self) -> Record:
        return self.request.record()

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(Request.from_record(record))

    def __repr__(self) -> str:
        return f"Requested({self.request!r})"


class RequestWithdrawn(Event):
    """Whoever asked has gone: nobody waits for the answer any more, and nothing is said of it."""

    __slots__ = ("class_name", "number")
    priority: ClassVar[int] = 2  # after the request itself

    def __init__(self, number: int, class_name: str) -> None:
        self.number = number
        self.class_name = class_name

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.class_name)
        assert isinstance(task, ClassTask), f"{task!r} is no class"
        task.withdrawn(self.number, now)

    def record(self) -> Record:
        return {"withdrawn": self.number, "class": self.class_name}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(record["withdrawn"], record["class"])

    def __repr__(self) -> str:
        return f"Withdrawn({self.number} of {self.class_name})"


class PartDone(Event):
    """A part of a request has ended, and this is what it cost."""

    __slots__ = ("cost_us", "job")

    def __init__(self, job: RequestPart, cost_us: int) -> None:
        self.job = job
        self.cost_us = cost_us

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.part_done(self.job, self.cost_us, now)

    def record(self) -> Record:
        return {"part_done": self.job.task.name, "job": self.job.number, "cost": self.cost_us}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(_part(kernel, record["part_done"], record["job"]), record["cost"])

    def __repr__(self) -> str:
        return f"PartDone({self.job!r}, {self.cost_us})"


class PartLost(Event):
    """A part was cancelled, or failed, and had no effect.

    A request that was cancelled is answered already. Where a part failed it is tried again; if there is no
    hope for the request it is answered with what is done.
    """

    __slots__ = ("hopeless", "job")

    def __init__(self, job: RequestPart, hopeless: bool = False) -> None:
        self.job = job
        self.hopeless = hopeless

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.part_lost(self.job, self.hopeless, now)

    def record(self) -> Record:
        record: Record = {"part_lost": self.job.task.name, "job": self.job.number}
        return {**record, "hopeless": True} if self.hopeless else record

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(_part(kernel, record["part_lost"], record["job"]), record.get("hopeless", False))

    def __repr__(self) -> str:
        return f"PartLost({self.job!r}, hopeless={self.hopeless})"


class UpdateDiscarded(Event):
    """An update of a table was discarded, as its data changes little; it would have cost about that much."""

    __slots__ = ("cost_us", "table")
    priority: ClassVar[int] = 1

    def __init__(self, table: str, cost_us: int) -> None:
        self.table = table
        self.cost_us = cost_us

    def take(self, kernel: Kernel, now: int) -> None:
        service = service_of(kernel.task(self.table).pool)
        if service is not None:
            service.discarded(self.cost_us, now)

    def record(self) -> Record:
        return {"discarded": self.table, "cost": self.cost_us}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(record["discarded"], record["cost"])

    def __repr__(self) -> str:
        return f"Discarded({self.table}, {self.cost_us})"


def _part(kernel: Kernel, name: str, number: int) -> RequestPart:
    job = kernel.running(name, number)
    assert isinstance(job, RequestPart), f"{job!r} is not of a class"
    return job
