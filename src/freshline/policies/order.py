"""What a policy decides."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import ClassVar

from freshline.kernel.task import Task


class Order:
    """The ready jobs of one pool, first things first.

    A policy that orders jobs by a key that is known when they become ready overrides `key`; ties go by
    definition order. Others override `add` and `take`.
    """

    # Whether a start does the work of all releases that are pending, however long the update becomes.
    absorbs: ClassVar[bool] = False

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, Task]] = []

    def key(self, task: Task) -> int:
        """The task's job with the smallest key runs first."""
        raise NotImplementedError

    def add(self, task: Task) -> None:
        """The task's job is ready."""
        heappush(self._ready, (self.key(task), task.index, task))

    def expect(self, task: Task) -> None:
        """The task's job is not released yet, but all its work is there. Strict policies wait."""

    def take(self, now: int, idle: list[int]) -> Task | None:
        """Removes and returns the task whose job runs next, given the idle tracks (a heap, not empty)."""
        return heappop(self._ready)[2] if self._ready else None

    def track_for(self, task: Task, idle: list[int]) -> int:
        """Removes and returns the track that runs it."""
        return heappop(idle)

    def ready(self) -> list[Task]:
        """The ready tasks, in no particular order."""
        return [task for _, _, task in self._ready]
