"""Earliest deadline first: NP-GEDF, strict and work-conserving."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import ClassVar, TypeVar

from freshline.kernel.core.order import E, Order, ReadyJob
from freshline.kernel.core.task import WAITING, Task

T = TypeVar("T", bound=Task)


class StrictEdf(Order[E]):
    """NP-GEDF: the job with the earlier deadline goes first (paper 004, section 4.1).

    A job never starts before its release, so a table that once fell behind by a file stays behind.
    """

    open: ClassVar[bool] = True
    keeps_distance: ClassVar[bool] = True

    def key(self, entry: E) -> int:
        return entry.deadline

    def add(self, entry: E) -> None:
        heappush(self._ready, (entry.deadline, entry.place, entry))


class Edf(StrictEdf[T]):
    """NP-GEDF that wastes no track: if no job is released, the next job of a backlogged table starts early.

    Other tables lose only the blocking that a non-preemptive job may always cause: docs/np-gedf-per-task.md,
    "Early starts", shows that the bounds hold. The job may be a batch, as long as the bounds allow
    (docs/batches.md).
    """

    def __init__(self) -> None:
        super().__init__()
        self._early: list[tuple[int, int, T]] = []
        self._expected: dict[str, int] = {}  # by task: the deadline of its last entry in `_early`

    def left(self, task: Task) -> None:
        super().left(task)
        self._expected.pop(task.name, None)
        self._early = [early for early in self._early if early[2] is not task]
        heapify(self._early)

    def expect(self, entry: T) -> None:
        if self._expected.get(entry.name) == entry.deadline:
            return
        self._expected[entry.name] = entry.deadline
        heappush(self._early, (entry.deadline, entry.place, entry))
        # If no track is ever idle, `take` never removes them: drop those that have started since.
        if len(self._early) > 2 * len(self._expected) + 16:
            self._early = [early for early in self._early if _is_waiting(early[2], early[0])]
            heapify(self._early)

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        if self._ready:
            return heappop(self._ready)[2]
        while self._early:
            deadline, _, task = heappop(self._early)
            # It may have been released, or started, since it was put here.
            if _is_waiting(task, deadline):
                return task.ahead(self.batch_limit_us)
        return None


def _is_waiting(task: Task, deadline: int) -> bool:
    return task.state == WAITING and task.deadline == deadline
