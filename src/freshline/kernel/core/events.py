"""What happens outside and is told to the kernel, and what the kernel answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from freshline.kernel.core.job import Job
from freshline.kernel.core.task import RetryTimer

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel

Record = dict[str, Any]


class Event:
    """Something that happened. It knows how it is taken, and how a journal tells it."""

    __slots__ = ()
    # Of several at one instant the lower is taken first: 0 ends of jobs, 1 what comes in, 2 what is learned
    # and who comes or goes, 3 the end of all.
    priority: ClassVar[int] = 0
    # Whether what it brings is there before any event of its instant is taken.
    arrives: ClassVar[bool] = False

    def arrive(self, kernel: Kernel) -> None:
        """Brings what it brings; asked where `arrives`."""

    def take(self, kernel: Kernel, now: int) -> None:
        """Does to the kernel's tasks what it means for them."""
        raise NotImplementedError

    def record(self) -> Record:
        """What a journal has of it; its first key is the event's name."""
        raise NotImplementedError

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        """The event of a journal again, for that kernel."""
        raise NotImplementedError


class JobFailed(Event):
    """A job has ended without effect. What it was to do is to be done again, not before `retry_at`."""

    __slots__ = ("job", "retry_at")

    def __init__(self, job: Job, retry_at: int) -> None:
        self.job = job
        self.retry_at = retry_at

    def take(self, kernel: Kernel, now: int) -> None:
        task = self.job.task
        task.failed(self.job, now)
        kernel.timers.set(self.retry_at, RetryTimer(task))

    def record(self) -> Record:
        return {"failed": self.job.task.name, "job": self.job.number, "retry_at": self.retry_at}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(kernel.running(record["failed"], record["job"]), record["retry_at"])

    def __repr__(self) -> str:
        return f"Failed({self.job!r}, retry_at={self.retry_at})"


class JobPaused(Event):
    """A job has been put aside, between two parts of what it does. It goes on when it is started again."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.paused(self.job, now)

    def record(self) -> Record:
        return {"paused": self.job.task.name, "job": self.job.number}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(kernel.running(record["paused"], record["job"]))

    def __repr__(self) -> str:
        return f"Paused({self.job!r})"


class Instruction:
    """What a driver is to do. Kinds of work may have some of their own."""

    __slots__ = ()

    def record(self) -> Record:
        """What a journal has of it; its first key is the instruction's name."""
        raise NotImplementedError


class Start(Instruction):
    """Run this job on its track, now; one that was put aside goes on."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def record(self) -> Record:
        return self.job.record()

    def __repr__(self) -> str:
        return f"Start({self.job!r})"


class Pause(Instruction):
    """Put this job aside as soon as it can be: `JobPaused` answers, or its end if that comes first."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def record(self) -> Record:
        return {"pause": self.job.task.name, "job": self.job.number}

    def __repr__(self) -> str:
        return f"Pause({self.job!r})"


class Cancel(Instruction):
    """End this job, which runs, without effect: its end answers, whichever it is by then."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def record(self) -> Record:
        return {"cancel": self.job.task.name, "job": self.job.number}

    def __repr__(self) -> str:
        return f"Cancel({self.job!r})"
