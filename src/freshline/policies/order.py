"""What a policy decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from freshline.kernel.task import Task

if TYPE_CHECKING:
    from freshline.kernel.job import Job
    from freshline.kernel.timers import Timers
    from freshline.plan.plan import PoolPlan, TablePlan


class Setting(NamedTuple):
    """The pool that an order is made for, and what it is part of."""

    pool: PoolPlan
    tables: Sequence[TablePlan]  # of all pools, by index
    tasks: Sequence[Task]  # of all pools, by index
    timers: Timers
    tracks_from: int  # the number of the pool's first track


class Order:
    """The ready jobs of one pool, first things first.

    A policy that orders jobs by a key that is known when they become ready overrides `key`; ties go by
    definition order. Others override `add` and `take`.
    """

    # How many updates the job that `take` last returned does at once: None for all that is there.
    batch: int | None = 1
    # The last instant at which a track was free and nothing waited, where the policy makes use of it.
    open_at = -1
    # Until when tables that recover may be passed over, where the policy does that.
    window_end = -1
    # Whether a track may be left idle although a job is ready.
    idles: ClassVar[bool] = False
    # Whether tasks change their periods: `review` is called before every dispatch.
    adapts: ClassVar[bool] = False

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, Task]] = []

    @classmethod
    def made_for(cls, setting: Setting) -> Self:
        """The order for a pool; a policy that must know more than the jobs overrides it."""
        return cls()

    def key(self, task: Task) -> int:
        """The task's job with the smallest key runs first."""
        raise NotImplementedError

    def add(self, task: Task) -> None:
        """The task's job is ready."""
        heappush(self._ready, (self.key(task), task.index, task))

    def expect(self, task: Task) -> None:
        """The task's job is not released yet, but all its work is there. Strict policies wait."""

    def excuse(self, task: Task, excused: bool) -> None:
        """The bound of the task's table is not asserted, for its feed broke; or it is again."""

    def behind(self, task: Task, behind: bool) -> None:
        """The task's table is behind by more than its period, or no longer is."""

    def late(self, task: Task) -> None:
        """The task's table is behind by more than its threshold."""

    def recovered(self, task: Task) -> None:
        """The task has left recovery mode."""

    def ended(self, job: Job, now: int) -> None:
        """A job has ended, well or badly."""

    def failed(self, task: Task, now: int) -> None:
        """The task's job has ended without effect, and is tried again later."""

    def learned(self, costs_us: Mapping[int, int]) -> None:
        """By task, what the shares of some are made for has become known; and their bounds, maybe."""

    def review(self, now: int) -> None:
        """Decides which tasks change their periods."""

    def may_jump(self, task: Task, now: int) -> bool:
        """Whether the task's job that starts now may go on over time in which its sources have no rows."""
        return True

    def take(self, now: int, idle: list[int]) -> Task | None:
        """Removes and returns the task whose job runs next, given the idle tracks (a heap, not empty)."""
        return heappop(self._ready)[2] if self._ready else None

    def track_for(self, task: Task, idle: list[int]) -> int:
        """Removes and returns the track that runs it."""
        return heappop(idle)

    def ready(self) -> list[Task]:
        """The ready tasks, in no particular order."""
        return [task for _, _, task in self._ready]
