"""A table as the kernel sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from freshline.kernel.core.job import Job
from freshline.kernel.core.task import IDLE, READY, RUNNING, WAITING, Task
from freshline.kernel.tables.batches import BatchCost, batch_max_after, fitting
from freshline.kernel.tables.update import Update

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.core.order import ReadyJob
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.intake import Intake
    from freshline.kernel.tables.release import Release
    from freshline.kernel.tables.source import Follower, Source


class TableTask(Task):
    """A table: its freshness, its intake and its dependents."""

    __slots__ = (
        "allowed_us",
        "batch_cost",
        "batch_max",
        "dependents",
        "empty",
        "freshness",
        "intake",
        "period_now_us",
        "period_us",
        "startup_us",
        "worst_case_us",
    )

    rule: Release
    job: Update | None

    def __init__(
        self,
        place: int,
        name: str,
        period_us: int,
        worst_case_us: int,
        intake: Intake,
        startup_us: int = 0,
    ) -> None:
        super().__init__(place, name)
        self.period_us = period_us
        self.period_now_us = period_us  # p(T, t) of paper 001: shorter while the table recovers
        self.worst_case_us = worst_case_us
        self.startup_us = startup_us  # the part of it that the updates of one job share
        self.intake = intake
        self.dependents: list[Follower] = []  # the tasks whose release follows its freshness
        self.freshness = 0
        # Nothing was ever loaded, and time did not start at 0: the first update takes all there is.
        self.empty = False
        self.batch_cost: BatchCost | None = None  # learned from runs with several files, if known
        # How many files a job may take ahead of its release, by the last ones' success; 1 after a failure.
        self.batch_max = 2
        self.allowed_us = 0  # how long the running batch may be, if it started with a limit

    def worst_case_of(self, updates: int) -> int:
        """The worst-case cost of a job of that many updates."""
        return updates * self.worst_case_us - (updates - 1) * self.startup_us

    def begin(self, now: int, track: int, updates: int | None = 1) -> Update:
        """Starts its job now, with that many updates at once; None: all there is.

        A released job may do several: as many as are known to cost no more than allowed.
        """
        if updates == 1 and self.batch_cost is not None and now >= self.release:
            updates = self._released()
        loaded_to, jump_to, files = self.intake.claim(self, now, updates)
        self.jobs_started += 1
        job = Update(
            self,
            self.jobs_started,
            self.release,
            self.deadline,
            now,
            track,
            self.freshness,
            loaded_to,
            files,
        )
        if jump_to > loaded_to and self.rule.may_jump(now):
            job.jump_to = jump_to
        if updates != 1:
            # The first update of a table is one, however far back it reaches.
            periods = 1 if self.empty else max(1, -(-job.length_us // self.period_us))
            job.updates = updates or len(files) or periods
        if updates is None:
            self.rule.absorb()
        elif now < self.release:
            self.rule.started_early(now)
        self.job = job
        self.state = RUNNING
        return job

    def ahead(self, limit_us: int) -> ReadyJob:
        allowed_us = min(limit_us, self.period_us)
        files = self._several(allowed_us)
        return self if files < 2 else Batch(self, files, allowed_us)

    def _released(self) -> int:
        """How many updates a released job does: no more than the bounds allow."""
        limit_us = self.pool.order.job_limit_us(self)
        allowed_us = min(self.worst_case_us if limit_us is None else limit_us, self.period_us)
        files = self._several(allowed_us) if allowed_us else 1
        if files > 1:
            self.allowed_us = allowed_us
        return files

    def _several(self, allowed_us: int) -> int:
        """How many files a job takes within that cost."""
        if self.batch_max < 2:
            self.batch_max = 2  # after this attempt, unless it fails as well
            return 1
        return fitting(self, allowed_us)

    def arrived(self, item: DataFile) -> None:
        self.intake.add(item)

    def source_advanced(self, now: int) -> None:
        self.rule.source_advanced(now)

    def unloaded(self) -> Sequence[DataFile]:
        return self.intake.unloaded(self.job)

    def source_moved(self, now: int) -> None:
        if self.state != RUNNING:
            self.rule.source_advanced(now)

    @property
    def at_work(self) -> bool:
        return self.state in (READY, RUNNING)

    @property
    def reads(self) -> Sequence[Source]:
        return self.intake.sources

    def finished(self, job: Job, freshness: int, now: int) -> None:
        """Its job has ended, and the table has that freshness now."""
        update = self.job
        assert update is job, f"{job!r} is not running"
        self.job = None
        self.pool.release_track(update, now)
        assert self.freshness <= freshness <= update.jump_to, f"{job!r}: {freshness} is not what it may load"
        self.freshness = freshness
        self.empty = self.empty and freshness == 0
        self.state = IDLE
        if update.updates > 1:
            self.batch_max = batch_max_after(self, update, now)
        self.rule.job_finished(now, update)
        for dependent in self.dependents:
            dependent.source_moved(now)

    def give_back(self, job: Job) -> None:
        assert isinstance(job, Update)
        self.intake.give_back(job.files)
        self.batch_max = 1  # so that one bad file does not hold up many

    def validate(self, now: int) -> None:
        super().validate(now)
        edge = self.intake.trailing_edge(now)
        assert 0 <= self.freshness <= edge, f"{self!r} is fresher than its sources"
        assert edge <= now, f"{self!r} could load the future"
        assert not (self.empty and self.freshness), f"{self!r} is empty and has data"
        if self.state != IDLE:
            assert self.release < self.deadline <= self.release + self.period_us
        if self.state == WAITING:
            assert self.intake.stale(self.freshness)
        job = self.job
        if job is not None:
            assert job.loaded_from == self.freshness <= job.loaded_to <= job.jump_to <= edge
        self.intake.validate(self)


class Batch:
    """A table's job of several updates at once, as an order gives it to its pool; None: all there is."""

    __slots__ = ("_allowed_us", "_task", "_updates")

    def __init__(self, task: TableTask, updates: int | None, allowed_us: int = 0) -> None:
        self._task = task
        self._updates = updates
        self._allowed_us = allowed_us  # how long it may be, if it starts ahead of its release

    @property
    def name(self) -> str:
        return self._task.name

    @property
    def release(self) -> int:
        return self._task.release

    @property
    def deadline(self) -> int:
        return self._task.deadline

    @property
    def place(self) -> int:
        return self._task.place

    def begin(self, now: int, track: int) -> Update:
        self._task.allowed_us = self._allowed_us
        return self._task.begin(now, track, self._updates)


def tables_of(kernel: Kernel) -> list[TableTask]:
    """The tables among a kernel's tasks, in the order of definition."""
    return [task for task in kernel.tasks if isinstance(task, TableTask)]
