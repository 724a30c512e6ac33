"""When a query's iterations are released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshline.kernel.core.task import ReleaseRule

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers
    from freshline.kernel.queries.task import QueryTask


class EveryStride(ReleaseRule):
    """Iteration k is released at k·δ, whatever became of earlier ones."""

    __slots__ = ("_task", "_timers")

    def __init__(self, task: QueryTask, timers: Timers) -> None:
        self._task = task
        self._timers = timers

    def begin(self, now: int) -> None:
        stride_us = self._task.stride_us
        self._timers.set(-(-now // stride_us) * stride_us, self)

    def due(self, at: int) -> int | None:
        self._task.released(at)
        return at + self._task.stride_us

    def unfinished_deadlines(self) -> list[int]:
        task = self._task
        current = [] if task.job is None else [task.job.deadline]
        return current + [released.at + task.deadline_us for released in task.waiting]
