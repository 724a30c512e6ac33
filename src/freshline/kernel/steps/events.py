"""What happens to steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.steps.job import StepJob

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class StepsCommitted(Event):
    """A job has ended: each of its steps is as fresh as its range goes."""

    __slots__ = ("job",)

    def __init__(self, job: StepJob) -> None:
        self.job = job

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.committed(self.job, now)

    def record(self) -> Record:
        return {"committed": self.job.task.name, "job": self.job.number}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        job = kernel.running(record["committed"], record["job"])
        assert isinstance(job, StepJob), f"{job!r} is not of a step"
        return cls(job)

    def __repr__(self) -> str:
        return f"Committed({self.job!r})"


class StepsDropped(Event):
    """A job has ended without effect, and is not done again: its file was put aside, or is out of reach.

    One that comes back is another arrival.
    """

    __slots__ = ("job",)

    def __init__(self, job: StepJob) -> None:
        self.job = job

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.dropped(self.job, now)

    def record(self) -> Record:
        return {"dropped": self.job.task.name, "job": self.job.number}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        job = kernel.running(record["dropped"], record["job"])
        assert isinstance(job, StepJob), f"{job!r} is not of a step"
        return cls(job)

    def __repr__(self) -> str:
        return f"Dropped({self.job!r})"
