"""AUS, the adaptive update scheduler of paper 001."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from fractions import Fraction
from heapq import heapify, heappop

from freshline.analysis.exact import SCALE, SCALE_BITS, exact_sum
from freshline.kernel.order import Entry
from freshline.kernel.task import READY
from freshline.policies.edf import Edf
from freshline.recovery.modes import AdaptiveRelease
from freshline.tables.task import TableTask
from freshline.tables.update import Update


class Aus(Edf[TableTask]):
    """NP-GEDF whose late tables are given a larger share of the tracks, as far as that is free.

    Rule NR with the capacity test (6): of the late tables the heaviest enters recovery mode first, among
    equal weights the one that asks for the least extra share, as in the paper. None goes before one that
    waits ahead of it: what a waiting table may expect can be said then.

    No job of a table that can recover so starts early. Those of a table without a bound do, as with `edf`: it
    has no recovery mode, and would stay behind for ever.
    """

    def __init__(self, shares: Mapping[int, tuple[int, int]], tracks: int) -> None:
        super().__init__()
        self.controller = self
        self._capacity = Capacity(shares, tracks)
        self._excused: dict[int, TableTask] = {}
        self._late: list[tuple[Fraction, Fraction, int, TableTask]] = []  # those that wait, the first first

    def add(self, entry: TableTask) -> None:
        super().add(entry)
        # Jobs that started otherwise than from here leave their entries behind.
        if len(self._ready) > 2 * len(self._capacity) + 16:
            self._ready = [ready for ready in self._ready if _is_ready(ready[2], ready[0])]
            heapify(self._ready)

    def expect(self, entry: TableTask) -> None:
        if not isinstance(entry.rule, AdaptiveRelease):
            super().expect(entry)

    def learned(self, costs_us: Mapping[int, int]) -> None:
        for index, cost_us in costs_us.items():
            self._capacity.set(index, cost_us, self._capacity.period_us(index))
        # Those that have a recovery mode now.
        self._early = [entry for entry in self._early if not isinstance(entry[2].rule, AdaptiveRelease)]
        heapify(self._early)

    def excuse(self, task: TableTask, excused: bool) -> None:
        if excused:
            self._excused[task.place] = task
        else:
            del self._excused[task.place]

    def late(self, task: TableTask) -> None:
        rule = adaptive(task)
        rule.queued = True
        cost_us, period_us = rule.terms.cost_us, rule.terms.period_us
        extra = Fraction(cost_us, period_us) - Fraction(cost_us, task.period_us)
        insort(self._late, (-rule.terms.weight, extra, task.place, task))

    def recovered(self, task: TableTask) -> None:
        self._capacity.set(task.place, adaptive(task).terms.cost_us, task.period_us)

    def ended(self, job: Update, now: int) -> None:
        pass

    def failed(self, job: Update, now: int) -> None:
        pass

    def review(self, now: int) -> None:
        while self._late:
            task = self._late[0][3]
            rule = adaptive(task)
            if rule.is_late(now):
                if not self._capacity.admits(task.place, rule.terms.cost_us, rule.terms.period_us):
                    return
                self._capacity.set(task.place, rule.terms.cost_us, rule.terms.period_us)
                rule.enter(now)
            rule.queued = False
            del self._late[0]

    def waiting(self, now: int) -> list[TableTask]:
        """The late tables that wait for a larger share, in the order in which they will get it.

        Those that have caught up meanwhile are still in the queue.
        """
        return [entry[3] for entry in self._late if adaptive(entry[3]).is_late(now)]

    def take(self, now: int, idle: list[int]) -> Entry | None:
        while self._ready:
            deadline, _, task = heappop(self._ready)
            # A job whose deadline was changed is there a second time.
            if _is_ready(task, deadline):
                return task
        return super().take(now, idle)

    def ready(self) -> list[TableTask]:
        valid = {task.place: task for deadline, _, task in self._ready if _is_ready(task, deadline)}
        return list(valid.values())


def _is_ready(task: TableTask, deadline: int) -> bool:
    return task.state == READY and task.deadline == deadline


def adaptive(task: TableTask) -> AdaptiveRelease:
    """The task's release rule, which has a recovery mode."""
    assert isinstance(task.rule, AdaptiveRelease), f"{task!r} has no recovery mode"
    return task.rule


class Capacity:
    """The tracks that are spoken for: Σ e/p(T, t), and whether one more change leaves it at most m (6)."""

    def __init__(self, shares: Mapping[int, tuple[int, int]], tracks: int) -> None:
        self._shares = dict(shares)  # by task: e and p(T, t)
        self._limit = tracks * SCALE
        self._tracks = tracks
        self._low = sum(_scaled(cost, period) for cost, period in self._shares.values())

    def __len__(self) -> int:
        return len(self._shares)

    def admits(self, task: int, cost: int, period: int) -> bool:
        low = self._low - _scaled(*self._shares[task]) + _scaled(cost, period)
        # Each share is too small by less than a unit.
        if low + len(self._shares) <= self._limit:
            return True
        if low > self._limit:
            return False
        shares = {**self._shares, task: (cost, period)}.values()
        numerator, denominator = exact_sum([cost for cost, _ in shares], [period for _, period in shares])
        return numerator <= self._tracks * denominator

    def period_us(self, task: int) -> int:
        """p(T, t)."""
        return self._shares[task][1]

    def set(self, task: int, cost: int, period: int) -> None:
        self._low += _scaled(cost, period) - _scaled(*self._shares[task])
        self._shares[task] = (cost, period)


def _scaled(cost: int, period: int) -> int:
    return (cost << SCALE_BITS) // period
