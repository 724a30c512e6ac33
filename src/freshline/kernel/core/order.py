"""Which job of a pool goes first. A policy is what users name; its pools have an order each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, cast

if TYPE_CHECKING:
    from freshline.kernel.core.controller import Controller
    from freshline.kernel.core.job import Job
    from freshline.kernel.core.task import Task
    from freshline.kernel.core.timers import Timers
    from freshline.planning.plan.plan import Plan, PoolPlan


class ReadyJob(Protocol):
    """What an order holds and a pool starts: a job that is to begin. A task is one, for its one job."""

    @property
    def name(self) -> str:
        """Whose job it is."""

    @property
    def release(self) -> int: ...

    @property
    def deadline(self) -> int: ...

    @property
    def place(self) -> int:
        """Ties go by it."""

    def begin(self, now: int, track: int) -> Job:
        """It starts now, on that track."""


E = TypeVar("E", bound=ReadyJob)


class OrderContext(NamedTuple):
    """The pool that an order is made for, and what it is part of."""

    pool: PoolPlan
    plan: Plan
    timers: Timers
    tracks_from: int  # the number of the pool's first track


class Order(Generic[E]):
    """The ready jobs of one pool, first things first.

    One that goes by a key which is known when jobs become ready overrides `key`; ties go by definition order.
    Others override `add` and `take`.
    """

    # Whether a track may be left idle although a job is ready.
    idles: ClassVar[bool] = False
    # Whether what is proven of it counts on a period between two jobs of a task.
    keeps_distance: ClassVar[bool] = False
    # Whether tasks may come and go while it runs.
    open: ClassVar[bool] = False
    # Whether a job that runs may be put aside for one that is ready.
    preemptive: bool = False
    # How long a job may be that starts ahead of its release and does more than one; 0: none does.
    batch_limit_us: int = 0
    # The same of a job that is released; None: what its task's jobs cost at worst, as bounds count them.
    released_limit_us: int | None = 0
    # Who adapts the pool, where its policy does that; it may be the order itself.
    controller: Controller[Any] | None = None

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, E]] = []

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        """The order for a pool; one that must know more than the jobs overrides it."""
        return cls()

    def begin(self, now: int) -> None:
        """The kernel has started."""

    def key(self, entry: E) -> int:
        """The job with the smallest key runs first."""
        raise NotImplementedError

    def left(self, task: Task) -> None:
        """The task belongs to the pool no more, and has no job that runs."""
        self._ready = [ready for ready in self._ready if ready[2] is not task]
        heapify(self._ready)

    def joined(self, task: Task) -> None:
        """The task belongs to the pool from now on."""

    def add(self, entry: E) -> None:
        """The job is ready."""
        heappush(self._ready, (self.key(entry), entry.place, entry))

    def expect(self, entry: E) -> None:
        """The job is not released yet, but all its work is there. Strict orders wait."""

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        """Removes and returns what runs next, given the idle tracks (a heap, not empty)."""
        return heappop(self._ready)[2] if self._ready else None

    def job_limit_us(self, task: Task) -> int | None:
        """How long the task's released job may be that starts now and does more than one."""
        return self.released_limit_us

    def goes_before(self, job: Job) -> bool:
        """Whether a job is ready for which that one, which runs, is to be put aside. Asked if preemptive."""
        ready = self._ready
        return bool(ready) and ready[0] < (self.key(cast(Any, job.task)), job.task.place)

    def beside_tables(self) -> Order[Any] | None:
        """Who goes on to start jobs of other kinds while the pool's tables are drained, if it has any."""
        return None

    def track_for(self, entry: ReadyJob, idle: list[int]) -> int:
        """Removes and returns the track that runs it."""
        return heappop(idle)

    def ready(self) -> list[E]:
        """Those that are ready, in no particular order."""
        return [entry for _, _, entry in self._ready]
