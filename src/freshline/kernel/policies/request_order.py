"""The common part of the policies with service classes: updates first, then parts of requests."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify
from typing import Any, ClassVar, Final, Self

from freshline.base.duration import SECOND
from freshline.definitions.sections.classes import ServiceClass
from freshline.definitions.sections.pools import Gains
from freshline.kernel.core.job import Job
from freshline.kernel.core.order import Order, OrderContext, ReadyJob
from freshline.kernel.core.task import Task
from freshline.kernel.core.timers import Timers
from freshline.kernel.policies.edf import Edf
from freshline.kernel.requests.class_targets import ClassTargets
from freshline.kernel.requests.pending_request import PendingRequest
from freshline.kernel.requests.request import RequestPart
from freshline.kernel.requests.service import ClassFigures, Service
from freshline.kernel.requests.task import ClassTask

PERIOD_US: Final = 5 * SECOND  # T, the period of sampling and control


class ClassPeriod:
    """A class in its pool: its targets, and its figures in this period."""

    __slots__ = (
        "_agreement",
        "admitted",
        "ended",
        "error",
        "errors",
        "figures",
        "place",
        "submitted",
        "task",
    )

    task: ClassTask

    def __init__(self, definition: ServiceClass, place: int) -> None:
        self.place = place  # 0 is the most important
        self.error = float(definition.error)  # ate_r
        self.submitted = 0
        self.admitted = 0
        self.ended = 0
        self.errors = 0.0  # the sum over all that ended
        self._agreement = ClassTargets(definition)
        self.figures = ClassFigures(None, None, None, 0, self._agreement.state)  # of the last period

    @property
    def ate(self) -> float:
        """The average error of the last period; 0 if no request was answered."""
        return self.figures.ate or 0.0

    def close(self, at: int) -> None:
        """Ends the period."""
        ate = self.errors / self.ended if self.ended else None
        admitted = self.admitted / self.submitted if self.submitted else None
        self.figures = ClassFigures(ate, admitted, None, 0, self._agreement.closed(ate, at))
        self.submitted = self.admitted = self.ended = 0
        self.errors = 0.0


class RequestOrder(Edf[Any], Service):
    """Updates go first, as with `edf`; a table whose next job is not released waits for requests too.

    Parts are never paused: the longest one counts as blocking in the bounds of the tables. Each policy
    decides about admission, the next part, and changes at the end of a period.
    """

    open: ClassVar[bool] = True

    def __init__(
        self,
        classes: Sequence[ServiceClass],
        timers: Timers,
        tracks: int = 1,
        update_load: float = 0.0,
        gains: Gains = "fixed",
    ) -> None:
        super().__init__()
        self.controller = self
        self.mwde = 0.0
        self.standings = [ClassPeriod(each, place) for place, each in enumerate(classes)]
        self.by_name = {each.name: self.standings[place] for place, each in enumerate(classes)}
        self.capacity_us = tracks * PERIOD_US  # of a period
        self.tracks = tracks
        self.update_load = update_load
        self.gains = gains
        self.updates_us = 0  # time of updates in this period
        self.gained_us = 0  # gc: the time that discarded updates would have taken
        self.ends_at = 0  # of this period
        self._factors = {each.name: float(each.data_error_factor) for each in classes}
        self._timers = timers

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        pool = setting.pool
        warehouse = setting.plan.warehouse
        classes = [warehouse.classes[name] for name in pool.classes]
        gains = warehouse.pools[pool.name].gains
        return cls(classes, setting.timers, pool.tracks, pool.utilization, gains)

    # -- decisions of a policy ---------------------------------------------------------------------

    def judge(self, standing: ClassPeriod, pending: PendingRequest, now: int) -> int | None:
        """None if the request is admitted; otherwise after how many µs the client may ask again."""
        raise NotImplementedError

    def enqueue(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        """Queues the request for its next part."""
        raise NotImplementedError

    def next_part(self, now: int) -> PendingRequest | None:
        """Removes and returns the request whose next part is to start."""
        raise NotImplementedError

    def queues(self) -> list[list[Any]]:
        """The heaps of waiting requests; the last field of an entry is the request.

        A request that is over stays until it would be next, or the period ends.
        """
        raise NotImplementedError

    def spent(self, standing: ClassPeriod, job: RequestPart, cost_us: int, done: bool) -> None:
        """A part of the class has taken that long."""

    def gone(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        """A request of the class is over."""

    def period_over(self, now: int) -> None:
        """Adapts to the period that has ended; the classes' figures are those of that period."""

    # -- called by the classes' tasks --------------------------------------------------------------

    def admit(self, pending: PendingRequest, now: int) -> int | None:
        standing = self.by_name[pending.name]
        standing.submitted += 1
        retry_after_us = self.judge(standing, pending, now)
        if retry_after_us is None:
            standing.admitted += 1
            self.enqueue(standing, pending)
        return retry_after_us

    def wait(self, pending: PendingRequest, now: int) -> None:
        self.enqueue(self.by_name[pending.name], pending)

    def part_ended(self, job: RequestPart, cost_us: int, done: bool, now: int) -> None:
        self.spent(self.by_name[job.task.name], job, cost_us, done)

    def answered(self, pending: PendingRequest, now: int) -> None:
        standing = self.by_name[pending.name]
        standing.ended += 1
        standing.errors += pending.error
        self.gone(standing, pending)

    def withdrawn(self, pending: PendingRequest, now: int) -> None:
        self.gone(self.by_name[pending.name], pending)

    def discarded(self, cost_us: int, now: int) -> None:
        self.gained_us += cost_us

    def data_error_factor(self, class_name: str) -> float:
        return self._factors[class_name]

    def figures(self, class_name: str) -> ClassFigures:
        standing = self.by_name[class_name]
        return standing.figures._replace(waiting=len(standing.task.open))

    # -- called by the kernel ----------------------------------------------------------------------

    def begin(self, now: int) -> None:
        if self.standings:
            self.ends_at = now + PERIOD_US
            self._timers.set(self.ends_at, self)

    def due(self, at: int) -> int | None:
        """A period is over."""
        for standing in self.standings:
            standing.close(at)
        self.ends_at = at + PERIOD_US
        self.period_over(at)
        for queue in self.queues():
            queue[:] = [entry for entry in queue if not entry[-1].over]
            heapify(queue)
        self.updates_us = self.gained_us = 0
        self.standings[0].task.pool.touch()
        return self.ends_at

    def joined(self, task: Task) -> None:
        if isinstance(task, ClassTask):
            task.service = self
            self.by_name[task.name].task = task

    def ended(self, job: Job, now: int) -> None:
        if type(job) is not RequestPart:
            self.updates_us += now - job.start

    def review(self, now: int) -> None: ...

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        if not self._ready:
            pending = self.next_part(now)
            if pending is not None:
                return pending
        return super().take(now, idle)

    def ready(self) -> list[Any]:
        waiting = [entry[-1] for queue in self.queues() for entry in queue]
        return [*super().ready(), *(pending for pending in waiting if not pending.over)]

    def beside_tables(self) -> Order[Any] | None:
        self._ready.clear()
        self._early.clear()
        return self if self.standings else None
