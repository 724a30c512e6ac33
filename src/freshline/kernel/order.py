"""What a policy decides."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from freshline.kernel.controller import Controller
    from freshline.kernel.job import Job


class Entry(Protocol):
    """What an order holds and a pool starts: a job that is to begin. A task is one, for its one job."""

    @property
    def release(self) -> int: ...

    @property
    def deadline(self) -> int: ...

    @property
    def place(self) -> int:
        """Ties go by it."""

    def begin(self, now: int, track: int) -> Job:
        """It starts now, on that track."""


E = TypeVar("E", bound=Entry)


class Order(Generic[E]):
    """The ready jobs of one pool, first things first.

    A policy that orders jobs by a key that is known when they become ready overrides `key`; ties go by
    definition order. Others override `add` and `take`.
    """

    # The last instant at which a track was free and nothing waited, where the policy makes use of it.
    open_at = -1
    # Until when tables that recover may be passed over, where the policy does that.
    window_end = -1
    # Whether a track may be left idle although a job is ready.
    idles: ClassVar[bool] = False
    # Who adapts the pool, where its policy does that; it may be the order itself.
    controller: Controller[Any] | None = None

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, E]] = []

    def key(self, entry: E) -> int:
        """The job with the smallest key runs first."""
        raise NotImplementedError

    def add(self, entry: E) -> None:
        """The job is ready."""
        heappush(self._ready, (self.key(entry), entry.place, entry))

    def expect(self, entry: E) -> None:
        """The job is not released yet, but all its work is there. Strict policies wait."""

    def excuse(self, task: E, excused: bool) -> None:
        """The bound of the task's table is not asserted, for its feed broke; or it is again."""

    def behind(self, task: E, behind: bool) -> None:
        """The task's table is behind by more than its period, or no longer is."""

    def late(self, task: E) -> None:
        """The task's table is behind by more than its threshold."""

    def recovered(self, task: E) -> None:
        """The task has left recovery mode."""

    def learned(self, costs_us: Mapping[int, int]) -> None:
        """By task, what the shares of some are made for has become known; and their bounds, maybe."""

    def may_jump(self, task: E, now: int) -> bool:
        """Whether the task's job that starts now may go on over time in which its sources have no rows."""
        return True

    def take(self, now: int, idle: list[int]) -> Entry | None:
        """Removes and returns what runs next, given the idle tracks (a heap, not empty)."""
        return heappop(self._ready)[2] if self._ready else None

    def track_for(self, entry: Entry, idle: list[int]) -> int:
        """Removes and returns the track that runs it."""
        return heappop(idle)

    def ready(self) -> list[E]:
        """Those that are ready, in no particular order."""
        return [entry for _, _, entry in self._ready]
