"""Which job of a pool goes first. Users name a policy; each pool of it has an order."""

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
    """A job that can start: an order holds it and a pool starts it. A task is one, for its one job."""

    @property
    def name(self) -> str:
        """The name of its task."""

    @property
    def release(self) -> int: ...

    @property
    def deadline(self) -> int: ...

    @property
    def place(self) -> int:
        """Its place in the order of definition, which breaks ties."""

    def begin(self, now: int, track: int) -> Job:
        """Starts the job now, on that track."""


E = TypeVar("E", bound=ReadyJob)


class OrderContext(NamedTuple):
    """The pool that an order is made for, and its surroundings."""

    pool: PoolPlan
    plan: Plan
    timers: Timers
    tracks_from: int  # the number of the pool's first track


class Order(Generic[E]):
    """The ready jobs of one pool, the first to run first.

    An order by a key that is known when jobs become ready overrides `key`; ties go by definition order.
    Other orders override `add` and `take`.
    """

    # Whether a track may stay idle although a job is ready.
    idles: ClassVar[bool] = False
    # Whether its proven bounds need a period between two jobs of a task.
    keeps_distance: ClassVar[bool] = False
    # Whether tasks may join and leave while it runs.
    open: ClassVar[bool] = False
    # Whether a ready job may preempt a running one.
    preemptive: bool = False
    # How long a batch may be that starts ahead of its release; 0: no batches.
    batch_limit_us: int = 0
    # The same for a released batch; None: the worst-case cost of its task's jobs, as the bounds assume.
    released_limit_us: int | None = 0
    # What adapts the pool, if its policy does so; it may be the order itself.
    controller: Controller[Any] | None = None

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, E]] = []

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        """The order for a pool; an order that needs more than the jobs overrides it."""
        return cls()

    def begin(self, now: int) -> None:
        """The kernel has started."""

    def key(self, entry: E) -> int:
        """The job with the smallest key runs first."""
        raise NotImplementedError

    def left(self, task: Task) -> None:
        """The task, which has no running job, has left the pool."""
        self._ready = [ready for ready in self._ready if ready[2] is not task]
        heapify(self._ready)

    def joined(self, task: Task) -> None:
        """The task has joined the pool."""

    def add(self, entry: E) -> None:
        """The job is ready."""
        heappush(self._ready, (self.key(entry), entry.place, entry))

    def expect(self, entry: E) -> None:
        """All work of the job is there, but it is not released yet. Strict orders wait."""

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        """Removes and returns what runs next, given the idle tracks (a heap, not empty)."""
        return heappop(self._ready)[2] if self._ready else None

    def job_limit_us(self, task: Task) -> int | None:
        """How long the task's released job may be if it starts now as a batch."""
        return self.released_limit_us

    def goes_before(self, job: Job) -> bool:
        """Whether a ready job preempts this running job. Its pool calls it if the order is preemptive."""
        ready = self._ready
        return bool(ready) and ready[0] < (self.key(cast(Any, job.task)), job.task.place)

    def beside_tables(self) -> Order[Any] | None:
        """The order that starts jobs of other kinds while the pool's tables are drained, if any."""
        return None

    def track_for(self, entry: ReadyJob, idle: list[int]) -> int:
        """Removes and returns the track that runs it."""
        return heappop(idle)

    def ready(self) -> list[E]:
        """The ready jobs, in no particular order."""
        return [entry for _, _, entry in self._ready]
