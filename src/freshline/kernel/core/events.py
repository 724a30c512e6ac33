"""Events, which tell the kernel what happened, and instructions, which the kernel returns."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from freshline.kernel.core.job import Job
from freshline.kernel.core.task import RetryTimer

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel

Record = dict[str, Any]


class Recorded:
    """An event or an instruction, which a journal has a record of; each is a dataclass with slots."""

    __slots__ = ()
    word: ClassVar[str]  # its name in journals: the first key of the record
    # Its other fields by their keys in the record, in this order. None and False are left out.
    keys: ClassVar[tuple[tuple[str, str], ...]] = ()

    def record(self) -> Record:
        """Its record in a journal; the first key is `word`."""
        told = ((key, getattr(self, name)) for name, key in self.keys)
        return {key: value for key, value in told if value is not None and value is not False}


class Event(Recorded):
    """Something that happened."""

    __slots__ = ()
    # Events of one instant are taken by priority: 0 ends of jobs, 1 arrivals, 2 costs learned, joins and
    # leaves, 3 the drain at the end.
    priority: ClassVar[int] = 0
    # Whether `arrive` is called before any event of its instant is taken.
    arrives: ClassVar[bool] = False

    def arrive(self, kernel: Kernel) -> None:
        """Adds what arrived to the kernel's tasks; called if `arrives`."""

    def take(self, kernel: Kernel, now: int) -> None:
        """Applies the event to the kernel's tasks."""
        raise NotImplementedError

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        """The event of a journal's record, for that kernel."""
        return cls(**cls._told(record))

    @classmethod
    def _told(cls, record: Record) -> Record:
        """The fields of `keys` from a record; those with a default may be missing."""
        optional = {each.name for each in fields(cls) if each.default is not MISSING}  # type: ignore[arg-type]
        return {name: record[key] for name, key in cls.keys if key in record or name not in optional}


@dataclass(slots=True, eq=False)
class JobEvent(Event):
    """Something that happened to a running job; most often its end."""

    of: ClassVar[type[Job]] = Job  # which jobs it can happen to
    job: Job

    def record(self) -> Record:
        # Not by super(): `slots=True` replaces the class that super() would refer to.
        return {self.word: self.job.task.name, "job": self.job.number, **Event.record(self)}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        job = kernel.running(record[cls.word], record["job"])
        assert isinstance(job, cls.of), f"{job!r} is no {cls.of.__name__}"
        return cls(job=job, **cls._told(record))


@dataclass(slots=True, eq=False)
class JobFailed(JobEvent):
    """A job has ended without effect. Its work is to be done again, not before `retry_at`."""

    word = "failed"
    keys = (("retry_at", "retry_at"),)
    retry_at: int

    def take(self, kernel: Kernel, now: int) -> None:
        task = self.job.task
        task.failed(self.job, now)
        kernel.timers.set(self.retry_at, RetryTimer(task))


@dataclass(slots=True, eq=False)
class JobPaused(JobEvent):
    """A job was paused between two parts of its work. A second `Start` resumes it."""

    word = "paused"

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.paused(self.job, now)


EVENTS: Final[tuple[type[Event], ...]] = (JobFailed, JobPaused)


class Instruction(Recorded):
    """What a driver is to do. A kind of work may have its own instructions."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class JobInstruction(Instruction):
    """What a driver is to do with a job."""

    job: Job

    def record(self) -> Record:
        return {self.word: self.job.task.name, "job": self.job.number}


@dataclass(slots=True, eq=False)
class Start(JobInstruction):
    """Run this job on its track now, or resume it if it was paused."""

    word = "start"

    def record(self) -> Record:
        return self.job.record()


@dataclass(slots=True, eq=False)
class Pause(JobInstruction):
    """Pause this job as soon as possible: `JobPaused` answers, or its end if that comes first."""

    word = "pause"


@dataclass(slots=True, eq=False)
class Cancel(JobInstruction):
    """End this running job without effect: an event of its end answers, whichever it is by then."""

    word = "cancel"
