"""A step as the kernel sees it: paper 002's operator, in the task unit that it belongs to."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshline.kernel.core.job import Job
from freshline.kernel.core.task import IDLE, READY, RUNNING, QueueingTask
from freshline.kernel.steps.job import Instance, StepJob, StepRun

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.steps.recoveries import StepRecoveries
    from freshline.kernel.steps.release import OnAdvance
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.remote_table import RemoteTable
    from freshline.kernel.tables.source import Follower


@dataclass(frozen=True, slots=True)
class StepTerms:
    """The terms of a step in a placement."""

    cost_us: int  # worst case, on its node
    sub_deadline_us: int  # D
    limit_us: int = 0  # how long a job of several steps may be on its node; 0: no such jobs
    leaves: bool = True  # whether its result is an output, or more than the next step reads it
    align_us: int | None = None
    # Of a step that loads a feed:
    burst_us: int = 0  # how long a burst lasts
    distance_us: int = 0  # the least time between two files that are no recovery
    finding_us: int = 0  # how much sooner a file may seem to come, since files take a moment to be found
    files_most: int = 1  # how many files a job of recovery may have


class StepTask(QueueingTask):
    """A step. Its instances run one after another, in the order of their ranges."""

    __slots__ = (
        "claimed_to",
        "dependents",
        "empty",
        "files",
        "follows",
        "freshness",
        "goes_on",
        "last",
        "moved_at",
        "parts",
        "reads",
        "recoveries",
        "terms",
        "until_us",
    )

    rule: OnAdvance
    job: StepJob | None
    waiting: deque[Instance]

    def __init__(
        self,
        place: int,
        name: str,
        terms: StepTerms,
        sources: Sequence[StepTask | RemoteTable],
        freshness: int | None = 0,
    ) -> None:
        super().__init__(place, name)
        self.terms = terms
        self.reads = tuple(sources)
        self.dependents: list[Follower] = []
        self.freshness = freshness or 0
        self.empty = freshness is None
        self.claimed_to = self.freshness  # the end of the last fixed range
        self.files: list[DataFile] = []  # that came and have no instance yet
        # The steps before and after it in its task (5.3), unless it is the first or last.
        self.follows: StepTask | None = None
        self.goes_on: StepTask | None = None
        self.until_us = terms.sub_deadline_us  # the sub-deadlines of its task up to and with its own
        self.last: Instance | None = None  # the last one done
        self.moved_at: int | None = None  # when that was
        self.parts: tuple[StepRun, ...] = ()  # of the job that is ready or runs
        self.recoveries: StepRecoveries | None = None  # of its kernel

    def follow(self, before: StepTask) -> None:
        """Puts it after that step in the same task; called for a task's steps in their order."""
        self.follows, before.goes_on = before, self
        self.until_us = before.until_us + self.terms.sub_deadline_us

    @property
    def due_us(self) -> int:
        """The sub-deadlines of its task up to the first step from here whose result leaves the task.

        With its own share alone it would go before steps that (6) leaves no room before: steps chained on one
        node are one unit there (docs/placement.md).
        """
        step = self
        while step.goes_on is not None and not step.terms.leaves:
            step = step.goes_on
        return step.until_us

    @property
    def at_work(self) -> bool:
        return bool(self.waiting) or self.job is not None

    @property
    def recovering(self) -> bool:
        """Whether recovery is waiting or running. Then what comes is behind it, and recovery too."""
        if self.waiting:
            return bool(self.waiting[-1].recovery)
        return self.job is not None and self.job.parts[0].instance.recovery

    @property
    def moved_in_recovery(self) -> bool:
        """Whether its last commit was recovery."""
        return self.last is not None and self.last.recovery

    @property
    def came_at(self) -> int | None:
        """When the burst that it has loaded up to arrived at its source."""
        return None if self.last is None else self.last.came_at

    def arrived(self, item: DataFile) -> None:
        insort(self.files, item)

    def source_advanced(self, now: int) -> None:
        self.rule.files_came(now)

    def unloaded(self) -> Sequence[DataFile]:
        begun = () if self.job is None else self.job.parts[0].files
        return [*begun, *(file for instance in self.waiting for file in instance.files), *self.files]

    def source_moved(self, now: int) -> None:
        self.rule.source_moved(now)

    def add(self, instance: Instance) -> None:
        """Queues an instance."""
        self.claimed_to = instance.loaded_to
        self.waiting.append(instance)
        if self.state == IDLE:
            self.next()

    def begin(self, now: int, track: int) -> StepJob:
        """Starts its first instance, with the steps that follow in its job, or with more of a backlog."""
        first: Instance = self.waiting.popleft()
        if first.recovery and first.files:
            self.parts = (StepRun(self, first.with_later(self._recovery_files(len(first.files)))),)
        for part in self.parts[1:]:
            part.step.claimed_to = part.loaded_to
        self.jobs_started += 1
        self.job = StepJob(self, self.jobs_started, self.parts, now, track)
        self.state = RUNNING
        return self.job

    def _parts(self) -> tuple[StepRun, ...]:
        """The steps of one job: its first instance, and those that follow in its task, within the limit.

        A job ends at every step whose result leaves the task. The next steps read nothing else, so they get
        no other work before this job is over, and what holds here holds when the job begins. A step that is
        behind, since a run ended between two commits, catches up by itself. A job of recovery has one step,
        which may load several files.
        """
        parts = [StepRun(self, self.waiting[0])]
        if self.waiting[0].recovery:
            return tuple(parts)
        cost_us = self.terms.cost_us
        step = self
        while step.goes_on is not None and not step.terms.leaves:
            step = step.goes_on
            cost_us += step.terms.cost_us
            if cost_us > self.terms.limit_us or step.at_work or step.rule.is_behind:
                break
            instance = step.rule.after(parts[-1].instance)
            if instance is None:
                break
            parts.append(StepRun(step, instance))
        return tuple(parts)

    def _recovery_files(self, begun: int) -> list[Instance]:
        """The further instances that a job of recovery takes which has that many files."""
        found: list[Instance] = []
        while self.waiting and self.waiting[0].recovery:
            begun += len(self.waiting[0].files)
            if begun > self.terms.files_most:
                break
            found.append(self.waiting.popleft())
        return found

    def committed(self, job: Job, now: int, reached: int | None = None) -> None:
        """All steps of its job are committed.

        `reached`: the job had several files, and the last ones were dropped, so it ended there.
        """
        mine = self._over(job, now)
        for part in mine.parts:
            instance = part.instance if reached is None else part.instance._replace(loaded_to=reached)
            part.step.done(instance, now)
        if reached is not None:
            self._claim_again()
        for dependent in mine.parts[-1].step.dependents:
            dependent.source_moved(now)
        # Only now: steps after it have their own work first, and take no part in the next job.
        if self.waiting:
            self.next()
        if self.recoveries is not None:
            self.recoveries.settle(now)

    def dropped(self, job: Job, now: int) -> None:
        """Its job had no effect and is not retried: the freshness of its steps stays.

        Later ranges now begin where this one began. Its file may come again, and would be late otherwise.
        """
        self.give_back(self._over(job, now))
        self.waiting.popleft()
        self._claim_again()
        if self.waiting:
            self.next()
        if self.recoveries is not None:
            self.recoveries.settle(now)

    def _claim_again(self) -> None:
        """Fixes the ranges of what waits anew, from where it is loaded to."""
        self.claimed_to = self.freshness
        for _ in range(len(self.waiting)):
            self.waiting.append(self.rule.again(self.waiting.popleft()))
            self.claimed_to = self.waiting[-1].loaded_to

    def _over(self, job: Job, now: int) -> StepJob:
        """Ends its job and frees the track."""
        mine = self.job
        assert mine is job, f"{job!r} is not running"
        self.job = None
        self.pool.release_track(mine, now)
        self.state = IDLE
        return mine

    def done(self, instance: Instance, now: int) -> None:
        """Takes a committed instance."""
        assert self.freshness <= instance.loaded_to, f"{self!r} went back"
        self.freshness = instance.loaded_to
        self.empty = self.empty and self.freshness == 0
        self.last, self.moved_at = instance, now

    def give_back(self, job: Job) -> None:
        assert isinstance(job, StepJob)
        self.waiting.appendleft(job.parts[0].instance)
        for part in job.parts[1:]:
            part.step.claimed_to = part.loaded_from

    def next(self) -> None:
        """Makes its first instance ready."""
        self.parts = self._parts()
        self.release, self.deadline = self.waiting[0].created, self.parts[-1].instance.deadline
        self.state = READY
        self.pool.add(self)

    def validate(self, now: int) -> None:
        super().validate(now)
        assert self.freshness <= self.claimed_to


def steps_of(kernel: Kernel) -> list[StepTask]:
    """The steps among a kernel's tasks, in the order of definition."""
    return [task for task in kernel.tasks if isinstance(task, StepTask)]
