"""When a table's next job is released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshline.kernel.core.task import BACKED_OFF, IDLE, READY, RUNNING, WAITING, ReleaseRule

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers
    from freshline.kernel.tables.task import TableTask
    from freshline.kernel.tables.update import Update


class Release(ReleaseRule):
    """A table's release rule."""

    __slots__ = ()

    def job_finished(self, now: int, job: Update) -> None:
        """The task's job has ended and its freshness is up to date."""

    def source_advanced(self, now: int) -> None:
        """The trailing edge may have moved."""

    def absorb(self) -> None:
        """The job that starts now does the work of every job released so far."""

    def started_early(self, now: int) -> None:
        """The task's job starts now, ahead of its release."""

    def may_jump(self, now: int) -> bool:
        """Whether the job that starts now may skip time in which the table's sources have no rows."""
        return True


class PeriodicRelease(Release):
    """Job j is released at phase + (j − 1)·p, whatever happens (paper 004, (1))."""

    __slots__ = ("pending", "phase_us", "task", "timers")

    def __init__(self, task: TableTask, phase_us: int, timers: Timers) -> None:
        self.task = task
        self.phase_us = phase_us
        self.timers = timers
        self.pending = 0  # released beyond the task's current job

    def begin(self, now: int) -> None:
        missed = max(0, -(-(now - self.phase_us) // self.task.period_us))
        self.timers.set(self.phase_us + missed * self.task.period_us, self)

    def next_release(self, now: int) -> int:
        """The next instant after now at which a job is released."""
        if now < self.phase_us:
            return self.phase_us
        return self.phase_us + ((now - self.phase_us) // self.task.period_us + 1) * self.task.period_us

    def due(self, at: int) -> int | None:
        task = self.task
        if task.state == IDLE:
            task.release = at
            task.deadline = at + task.period_us
            task.state = READY
            task.pool.add(task)
        else:
            self.pending += 1
        return at + task.period_us

    def job_finished(self, now: int, job: Update) -> None:
        if self.pending:
            self.pending -= 1
            task = self.task
            task.release += task.period_us
            task.deadline += task.period_us
            task.state = READY
            task.pool.add(task)

    def retry(self, now: int) -> None:
        # It keeps its release and deadline. Periodic jobs come whether one failed or not, so this is one more
        # job than the analysis counts, and bounds in its pool are no longer asserted.
        self.task.state = READY
        self.task.pool.add(self.task)

    def started_early(self, now: int) -> None:
        raise AssertionError("a periodic job is never expected before its release")

    def absorb(self) -> None:
        task = self.task
        task.release += self.pending * task.period_us
        task.deadline += self.pending * task.period_us
        self.pending = 0

    def unfinished_deadlines(self) -> list[int]:
        task = self.task
        if task.state == IDLE:
            return []
        current = task.deadline if task.job is None else task.job.deadline
        return [current, *(task.deadline + (k + 1) * task.period_us for k in range(self.pending))]

    def validate(self) -> None:
        assert self.task.state != WAITING
        assert self.pending == 0 or self.task.state in (READY, RUNNING, BACKED_OFF)


class StaleRelease(Release):
    """A job is released when there is something to load and the last job's period is over.

    Paper 001's rule (4): r = d of the previous job if the table is not fresh at max(d, f), even if that
    lies in the past; otherwise the first instant at which it is not fresh. Deadlines by (3).
    """

    __slots__ = ("finish_before", "next_from", "task", "timers")

    def __init__(self, task: TableTask, timers: Timers) -> None:
        self.task = task
        self.timers = timers
        self.finish_before = 0
        self.next_from = 0  # the earliest release of the job after the current one: d in (4)

    def begin(self, now: int) -> None:
        self.source_advanced(now)

    def due(self, at: int) -> int | None:
        task = self.task
        # A job that started early leaves its timer behind.
        if task.state == WAITING and task.release == at:
            task.state = READY
            task.pool.add(task)
        return None

    def job_finished(self, now: int, job: Update) -> None:
        self.finish_before = now
        if self.task.intake.stale(self.task.freshness):
            self._release(now)

    def retry(self, now: int) -> None:
        if not self.task.pool.order.keeps_distance:
            self.next_from = min(self.next_from, now)
        # This is the table's next job. With the failed job's deadline, a table that fails for long would go
        # before all others: docs/np-gedf-per-task.md, "Failed jobs". An idle track may take it.
        self._release(now)
        if self.task.state == WAITING:
            self.task.pool.expect(self.task)

    def source_advanced(self, now: int) -> None:
        task = self.task
        if task.state == IDLE:
            if task.intake.stale(task.freshness):
                self._release(now)
        elif task.state == WAITING and task.intake.backlogged(task.freshness, task.period_us):
            task.pool.expect(task)

    def started_early(self, now: int) -> None:
        # If this counted from the job's planned deadline, the table would stay ahead of time for ever:
        # docs/np-gedf-per-task.md, "Early starts".
        self.next_from = now + self.task.period_now_us

    def unfinished_deadlines(self) -> list[int]:
        task = self.task
        return [task.deadline] if task.state > WAITING else []

    def _release(self, now: int) -> None:
        task = self.task
        release = self.next_from if now <= self.next_from or now == self.finish_before else now
        task.release = release
        task.deadline = self.next_from = release + task.period_now_us
        if release <= now:
            task.state = READY
            task.pool.add(task)
            return
        task.state = WAITING
        self.timers.set(release, self)
        if task.intake.backlogged(task.freshness, task.period_us):
            task.pool.expect(task)
