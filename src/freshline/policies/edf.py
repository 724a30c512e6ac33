"""Earliest deadline first: NP-GEDF, strict and work-conserving."""

from __future__ import annotations

from heapq import heappop, heappush

from freshline.kernel.task import WAITING, Task
from freshline.policies.order import Order


class StrictEdf(Order):
    """NP-GEDF: the job with the earlier deadline goes first (paper 004, section 4.1).

    A job never starts before its release, so a table that once fell behind by a file stays behind.
    """

    def key(self, task: Task) -> int:
        return task.deadline

    def add(self, task: Task) -> None:
        heappush(self._ready, (task.deadline, task.index, task))


class Edf(StrictEdf):
    """NP-GEDF that wastes no track: where no job is released, a backlogged table's next one starts early.

    It keeps the deadline that paper 001's (3) and (4) give it, so it takes nothing from the others but
    the blocking that a non-preemptive job of later deadline may always cause.
    """

    def __init__(self) -> None:
        super().__init__()
        self._early: list[tuple[int, int, Task]] = []

    def expect(self, task: Task) -> None:
        heappush(self._early, (task.deadline, task.index, task))

    def take(self, now: int, idle: list[int]) -> Task | None:
        if self._ready:
            return heappop(self._ready)[2]
        while self._early:
            deadline, _, task = heappop(self._early)
            # It may have been released, or started, since it was put here.
            if task.state == WAITING and task.deadline == deadline:
                return task
        return None
