"""When a step's instances are created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from freshline.base.align import last_edge
from freshline.kernel.core.task import ReleaseRule
from freshline.kernel.steps.job import Instance, StepJob
from freshline.planning.plan.step_promises import Backlog

if TYPE_CHECKING:
    from freshline.kernel.steps.task import StepTask


class OnAdvance(ReleaseRule):
    """An instance is created when the least freshness of the inputs advances; its range is fixed then (5.4).

    A step that loads a feed has one for each file. What another node commits counts from that instant, not
    from when it is heard here: the blocking includes the delay. Deadlines count from the creation of the
    task's instance, with the sub-deadlines of its steps up to the next whose result leaves it. With those of
    all steps, as in (12), a branch of a task might come too late.

    An instance is recovery if its file came too soon after others, if the last commit of a source was
    recovery, or if recovery of its own step is still to be done. What an earlier run left is recovery too.
    """

    __slots__ = ("_backlog", "_burst_came_at", "_later", "_next_at", "_task")

    def __init__(self, task: StepTask) -> None:
        self._task = task
        self._burst_came_at: int | None = None  # when the first file of the last burst came
        self._next_at = 0  # when the next file may come that is no recovery
        self._backlog: Backlog | None = None  # the last one
        self._later = 0  # the files that came after it

    def begin(self, now: int) -> None:
        if self._task.reads:
            self._advance(now, True)
            if self._task.waiting and self._task.recoveries is not None:
                self._task.recoveries.catches_up()

    def source_moved(self, now: int) -> None:
        """A source may be fresher than before."""
        task = self._task
        self._advance(now, task.recovering or any(source.moved_in_recovery for source in task.reads))

    def _advance(self, now: int, recovery: bool) -> None:
        task = self._task
        before = None if task.follows is None else task.follows.last
        ready = _last((source.moved_at for source in task.reads), now)
        if before is not None:
            created, came_at = before.created, before.came_at
        else:
            created, came_at = ready, _last((source.came_at for source in task.reads), now)
        if self.is_behind:
            task.add(self._instance(self._edge, created, came_at, ready, recovery))

    @property
    def is_behind(self) -> bool:
        """Whether its sources have a range that no instance covers yet."""
        return self._edge > self._task.claimed_to

    def files_came(self, now: int) -> None:
        """Creates an instance for each file that has come."""
        task = self._task
        came_at = self._burst_came_at
        if came_at is None or now - came_at >= task.terms.burst_us:
            came_at = self._burst_came_at = now
        files, task.files = task.files, []
        for file in files:
            edge, recovery = max(task.claimed_to, file.timestamp), self._is_recovery(now)
            if recovery and task.recoveries is not None:
                self._count(now)
            task.add(self._instance(edge, now, came_at, now, recovery)._replace(files=(file,)))

    def _is_recovery(self, now: int) -> bool:
        """Whether a file that comes now is recovery; one that is not moves the time of the next.

        Its age does not matter: an old file that comes when one is due costs no more than another.
        """
        terms = self._task.terms
        if self._task.recovering or now < self._next_at - terms.finding_us:
            return True
        self._next_at = max(now, self._next_at) + terms.distance_us
        return False

    def _count(self, now: int) -> None:
        """Counts a file that is recovery: of the backlog, or one that comes later as declared.

        A healthy feed brings one more file than there are distances since its last. The backlog counts this
        one too, so that the next file after an outage need not be on time.
        """
        task, terms, backlog = self._task, self._task.terms, self._backlog
        assert task.recoveries is not None
        if backlog is None or not task.recovering:
            self._later = 0
            self._backlog = Backlog(task.name, now, now, 2)
        elif now == backlog.last:
            self._backlog = backlog._replace(files=backlog.files + 1)
        else:
            self._later += 1
            since_us = now - (self._next_at - terms.distance_us) + terms.finding_us
            if self._later <= 1 + since_us // max(1, terms.distance_us):
                return
            self._later -= 1
            self._backlog = backlog._replace(last=now, files=backlog.files + 1)
        task.recoveries.grew(self._backlog)

    def job_failed(self, now: int, job: StepJob) -> None:
        if self._task.recoveries is not None:
            self._task.recoveries.catches_up()

    def again(self, instance: Instance) -> Instance:
        """An instance for files, with its new range after an earlier one was dropped."""
        claimed_to = self._task.claimed_to
        edge = max(claimed_to, *(file.timestamp for file in instance.files))
        return instance._replace(loaded_from=claimed_to, loaded_to=edge)

    def after(self, before: Instance) -> Instance | None:
        """The instance that follows that of the step before in one job; None: no whole window."""
        edge = last_edge(before.loaded_to, self._task.terms.align_us)
        if edge <= self._task.claimed_to:
            return None
        return self._instance(edge, before.created, before.came_at, before.ready, before.recovery)

    def retry(self, now: int) -> None:
        self._task.next()

    def unfinished_deadlines(self) -> list[int]:
        """The deadlines of what is no recovery, which has none to keep."""
        task = self._task
        running = [] if task.job is None else [part.instance for part in task.job.parts]
        return [instance.deadline for instance in (*running, *task.waiting) if not instance.recovery]

    def _instance(self, edge: int, created: int, came_at: int, ready: int, recovery: bool) -> Instance:
        task = self._task
        return Instance(task.claimed_to, edge, (), came_at, created, ready, created + task.due_us, recovery)

    @property
    def _edge(self) -> int:
        task = self._task
        return last_edge(min(source.freshness for source in task.reads), task.terms.align_us)


def _last(instants: Iterable[int | None], now: int) -> int:
    """The last known instant of all inputs, or now if none is known."""
    return max((at for at in instants if at is not None), default=now)
