"""AUS, the adaptive update scheduler of paper 001."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop
from typing import Self

from freshline.kernel.core.order import OrderContext, ReadyJob
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.task import READY, Task
from freshline.kernel.policies.edf import Edf
from freshline.kernel.recovery.capacity import Capacity
from freshline.kernel.recovery.modes import AdaptiveRelease, adaptive
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.tables.task import TableTask
from freshline.kernel.tables.update import Update


def shares(setting: OrderContext) -> dict[str, tuple[int, int]]:
    """By task: the cost and the period of its share of the tracks."""
    tables = setting.plan.tables_by_name
    own = [tables[name] for name in setting.pool.tables]
    return {table.name: (table.provisioned_us or 1, table.period_us) for table in own}


class Aus(Edf[TableTask]):
    """NP-GEDF that gives late tables a larger share of the tracks, as far as one is free.

    Rule NR with the capacity test (6): the heaviest late table enters recovery mode first, among equal
    weights the one with the least extra share, as in the paper. No table overtakes one that waits ahead of
    it, so a waiting table knows what to expect.

    Jobs of a table with a recovery mode never start early, except after a failed job. Jobs of a table without
    a bound do, as with `edf`: it has no recovery mode, and would stay behind for ever.
    """

    open = False  # shares and bounds are made for a fixed set of tables
    # The last instant with a free track and no waiting job, if the order uses it.
    open_at = -1
    # Until when recovering tables may be passed over, if the order does so.
    window_end = -1
    # The number of certificates tried; and when and why certificates were given up.
    certificates = 0
    broken: Sequence[tuple[int, str]] = ()

    def __init__(self, shares: Mapping[str, tuple[int, int]], tracks: int) -> None:
        super().__init__()
        self.controller = self
        self._capacity = Capacity(shares, tracks)
        self._excused: dict[str, TableTask] = {}
        self._late: list[tuple[Fraction, Fraction, int, TableTask]] = []  # waiting to recover, in order

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        return cls(shares(setting), setting.pool.tracks)

    def joined(self, task: Task) -> None:
        assert isinstance(task, TableTask), f"{task!r} is not a table"
        if isinstance(task.rule, RememberingRelease):
            task.rule.order = self

    def add(self, entry: TableTask) -> None:
        super().add(entry)
        # Jobs that were not started from this heap leave their entries behind.
        if len(self._ready) > 2 * len(self._capacity) + 16:
            self._ready = [ready for ready in self._ready if _is_ready(ready[2], ready[0])]
            heapify(self._ready)

    def expect(self, entry: TableTask) -> None:
        if not isinstance(entry.rule, AdaptiveRelease) or entry.rule.failed:
            super().expect(entry)

    # -- called by the tables' rules --------------------------------------------------------------

    def learned(self, costs_us: Mapping[str, int]) -> None:
        """Costs of shares have become known, by task, and maybe bounds."""
        for name, cost_us in costs_us.items():
            self._capacity.set(name, cost_us, self._capacity.period_us(name))
        # Without those that have a recovery mode now.
        self._early = [entry for entry in self._early if not isinstance(entry[2].rule, AdaptiveRelease)]
        heapify(self._early)

    def excuse(self, task: TableTask, excused: bool) -> None:
        """The bound of the task's table is not asserted, since its feed broke; or it is again."""
        if excused:
            self._excused[task.name] = task
        else:
            del self._excused[task.name]

    def behind(self, task: TableTask, behind: bool) -> None:
        """The task's table is behind by more than its period, or no longer is."""

    def late(self, task: TableTask) -> None:
        """The task's table is behind by more than its threshold."""
        rule = adaptive(task)
        rule.queued = True
        cost_us, period_us = rule.terms.cost_us, rule.terms.period_us
        extra = Fraction(cost_us, period_us) - Fraction(cost_us, task.period_us)
        insort(self._late, (-rule.terms.weight, extra, task.place, task))

    def may_jump(self, rule: AdaptiveRelease, now: int) -> bool:
        """Whether the job that starts now may skip time in which the table's sources have no rows."""
        return True

    def recovered(self, task: TableTask) -> None:
        """The task has left recovery mode."""
        self._capacity.set(task.name, adaptive(task).terms.cost_us, task.period_us)

    def job_limit_us(self, task: Task) -> int | None:
        if self.released_limit_us is None and isinstance(task.rule, AdaptiveRelease):
            assert isinstance(task, TableTask)
            return min(task.worst_case_us, task.rule.terms.cost_us)  # the cost that its share is made for
        return self.released_limit_us

    # -- decisions ---------------------------------------------------------------------------------

    def ended(self, job: Update, now: int) -> None:
        pass

    def review(self, now: int) -> None:
        while self._late:
            task = self._late[0][3]
            rule = adaptive(task)
            if rule.is_late(now):
                if not self._capacity.admits(task.name, rule.terms.cost_us, rule.terms.period_us):
                    return
                self._capacity.set(task.name, rule.terms.cost_us, rule.terms.period_us)
                rule.enter(now)
            rule.queued = False
            del self._late[0]

    def waiting(self, now: int) -> list[TableTask]:
        """The late tables that wait for a larger share, in the order in which they will get it.

        The queue may still hold tables that have caught up.
        """
        return [entry[3] for entry in self._late if adaptive(entry[3]).is_late(now)]

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        while self._ready:
            deadline, _, task = heappop(self._ready)
            # A job with a changed deadline has two entries.
            if _is_ready(task, deadline):
                return task
        return super().take(now, idle)

    def ready(self) -> list[TableTask]:
        valid = {task.name: task for deadline, _, task in self._ready if _is_ready(task, deadline)}
        return list(valid.values())


def _is_ready(task: TableTask, deadline: int) -> bool:
    return task.state == READY and task.deadline == deadline


def admission(pool: TrackPool) -> Aus | None:
    """The order of a pool, if it has a recovery mode."""
    return pool.order if isinstance(pool.order, Aus) else None


def waiting(pool: TrackPool, now: int) -> list[TableTask]:
    """The late tables of a pool that wait for a larger share, in the order in which they will get it."""
    order = admission(pool)
    return [] if order is None else order.waiting(now)


def given_up(pool: TrackPool) -> Sequence[tuple[int, str]]:
    """When and why a pool's certificates were given up; the latest of them."""
    order = admission(pool)
    return () if order is None else order.broken
