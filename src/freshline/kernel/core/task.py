"""A task: a name with one job after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from freshline.kernel.core.job import Job

if TYPE_CHECKING:
    from freshline.kernel.core.order import ReadyJob
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.core.timers import Waiter

IDLE: Final = 0  # no job released
WAITING: Final = 1  # the release of the next job is known, and ahead
READY: Final = 2  # released, not started
RUNNING: Final = 3
BACKED_OFF: Final = 4  # its job failed, and is retried later
PAUSED: Final = 5  # its job was paused, and waits to go on


class ReleaseRule:
    """When a task's jobs are released: it moves the task between idle, waiting and ready.

    A rule overrides what it needs; every other method does nothing.
    """

    __slots__ = ()

    def begin(self, now: int) -> None:
        """The kernel has started, or the task has joined it."""

    def due(self, at: int) -> int | None:
        """The timer set for `at` went off. Returns the instant of the next one, if there is one."""
        return None

    def job_failed(self, now: int, job: Any) -> None:
        """The task's job has ended without effect, and is retried later."""

    def retry(self, now: int) -> None:
        """The back-off of a failed job is over: its work is to be done."""

    def unfinished_deadlines(self) -> list[int]:
        """The deadlines of jobs that are released and not finished."""
        return []

    def validate(self) -> None:
        """Raises AssertionError if its state and the task's are inconsistent."""


class FeedReader(Protocol):
    """A task that loads what arrives from outside."""

    @property
    def name(self) -> str: ...

    def arrived(self, item: Any) -> None:
        """Stores an arrived item; `source_advanced` follows."""

    def source_advanced(self, now: int) -> None:
        """There may be more work than before."""

    def unloaded(self) -> Sequence[Any]:
        """What has arrived and is not loaded, oldest first."""


class Task:
    """A name with one job after another; the task holds its current or next job.

    So it has one release and one deadline; its release rule counts further releases. The kinds of task define
    what a job does and what its end means.
    """

    __slots__ = ("deadline", "job", "jobs_started", "name", "place", "pool", "release", "rule", "state")

    pool: TrackPool
    rule: ReleaseRule
    job: Job | None

    def __init__(self, place: int, name: str) -> None:
        self.place = place  # in the order of definition; breaks ties
        self.name = name
        self.state = IDLE
        self.release = 0
        self.deadline = 0
        self.job = None
        self.jobs_started = 0

    def running(self, number: int) -> Job | None:
        """The job of that number, if it has started and not ended."""
        job = self.job
        return job if job is not None and job.number == number else None

    def waiters(self) -> Sequence[Waiter]:
        """The waiters of its timers."""
        return (self.rule,)

    def begin(self, now: int, track: int) -> Job:
        """Starts its job now, on that track. Its pool calls it."""
        raise NotImplementedError

    def ahead(self, limit_us: int) -> ReadyJob:
        """The job to start now, ahead of its release, on a track that would stay idle.

        It may do more than the task's next job, within the limit.
        """
        return self

    def failed(self, job: Job, now: int) -> None:
        """Its job has ended without effect, and is retried later."""
        assert self.job is job, f"{job!r} is not running"
        self.job = None
        self.pool.release_track(job, now)
        self.give_back(job)
        self.state = BACKED_OFF
        self.rule.job_failed(now, job)

    def paused(self, job: Job, now: int) -> None:
        """Its job was paused, and waits in its pool to go on."""
        assert self.job is job, f"{job!r} is not running"
        assert self.state == RUNNING, f"{job!r} has been put aside before"
        self.state = PAUSED
        self.pool.put_aside(job)

    def give_back(self, job: Job) -> None:
        """Takes back the work of a failed job, to be done again."""

    def retry(self, now: int) -> None:
        """The back-off of a failed job is over. Its rule decides when the next attempt is released."""
        if self.state == BACKED_OFF:
            self.rule.retry(now)

    def queued(self) -> Sequence[ReadyJob]:
        """Its entries in the order of its pool."""
        return (self,) if self.state in (READY, PAUSED) else ()

    def validate(self, now: int) -> None:
        """Raises AssertionError if its state is inconsistent."""
        assert (self.state in (RUNNING, PAUSED)) == (self.job is not None)
        if self.state == WAITING:
            assert self.release > now
        if self.state == READY:
            assert self.release <= now
        job = self.job
        if job is not None:
            assert job.number == self.jobs_started
            assert job.start <= now
            assert (self.pool.running.get(job.track) is job) == (self.state == RUNNING)
        self.rule.validate()

    def __repr__(self) -> str:
        return f"Task({self.name})"


class QueueingTask(Task):
    """A task with work that is fixed at its release: released work waits in a queue, oldest first."""

    __slots__ = ("waiting",)

    def __init__(self, place: int, name: str) -> None:
        super().__init__(place, name)
        self.waiting: deque[Any] = deque()  # released and not started

    def validate(self, now: int) -> None:
        super().validate(now)
        assert self.state != WAITING
        assert bool(self.waiting) >= (self.state == READY), f"{self!r} is ready for nothing"
        assert self.state != IDLE or not self.waiting, f"{self!r} forgets what waits"


class RetryTimer:
    """The end of a failed job's back-off."""

    __slots__ = ("task",)

    def __init__(self, task: Task) -> None:
        self.task = task

    def due(self, at: int) -> int | None:
        self.task.retry(at)
        return None
