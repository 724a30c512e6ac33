"""Draining: a run loads all there is before it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.order import Order, ReadyJob
from freshline.kernel.core.task import BACKED_OFF, IDLE, READY, WAITING, RetryTimer
from freshline.kernel.tables.membership import LeavingRelease
from freshline.kernel.tables.release import Release
from freshline.kernel.tables.task import Batch, TableTask, tables_of

if TYPE_CHECKING:
    from freshline.kernel.core.job import Job
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.tables.update import Update


@dataclass(slots=True, eq=False)
class DrainBegun(Event):
    """From now on no table keeps its period: a table with anything to load takes all of it at once.

    Running jobs go on, and failed ones are retried when due. The orders of the policies are replaced. Other
    kinds of tasks continue as before.
    """

    word = "drain"
    priority = 3  # after what is learned at its instant, which goes to the orders that it replaces

    def take(self, kernel: Kernel, now: int) -> None:
        tables = tables_of(kernel)
        others = {id(waiter) for task in kernel.tasks if task not in tables for waiter in task.waiters()}
        kernel.timers.keep(lambda waiter: isinstance(waiter, RetryTimer) or id(waiter) in others)
        own = {task.pool.name for task in tables}
        pools = [pool for pool in kernel.pools if pool.name in own]
        for pool in pools:
            pool.adopt(DrainingOrder(pools, pool.order.beside_tables()))
        for task in tables:
            _drain(task, now)
        for task in tables:
            task.rule.begin(now)

    def record(self) -> Record:
        return {self.word: True}


class DrainingRelease(Release):
    """A job is released whenever there is anything to load."""

    __slots__ = ("_since", "_task")

    def __init__(self, task: TableTask, since: int) -> None:
        self._task = task
        self._since = since

    def begin(self, now: int) -> None:
        self.source_advanced(now)

    def source_advanced(self, now: int) -> None:
        task = self._task
        if task.state == IDLE and task.intake.lacks(task.freshness, self._since):
            task.release, task.deadline = now, now + task.period_us
            task.state = READY
            task.pool.add(task)

    def job_finished(self, now: int, job: Update) -> None:
        self.source_advanced(now)

    def retry(self, now: int) -> None:
        self._task.state = IDLE
        self.source_advanced(now)

    def unfinished_deadlines(self) -> list[int]:
        return [] if self._task.state == IDLE else [self._task.deadline]

    def validate(self) -> None:
        assert self._task.state != WAITING


class DrainingOrder(Order[TableTask]):
    """Earliest deadline first; but a table waits while there is work upstream of it, and then takes it all.

    It is its pool's controller, to dispatch other pools again when such work has ended. `rest` starts the
    pool's other work if no table can start.
    """

    idles: ClassVar[bool] = True  # for what is upstream

    def __init__(self, pools: Sequence[TrackPool], rest: Order[Any] | None = None) -> None:
        super().__init__()
        self.controller = self
        self._pools = pools
        self._rest = rest

    def key(self, entry: TableTask) -> int:
        return entry.deadline

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        free = [ready for ready in self._ready if not _has_work_upstream(ready[2])]
        if not free:
            return None if self._rest is None else self._rest.take(now, idle)
        task = min(free)[2]
        self.left(task)
        return Batch(task, None)

    def ended(self, job: Job, now: int) -> None:
        if self._rest is not None and self._rest.controller is not None:
            self._rest.controller.ended(job, now)
        for pool in self._pools:
            pool.touch()

    def ready(self) -> list[Any]:
        return [*super().ready(), *(() if self._rest is None else self._rest.ready())]

    def review(self, now: int) -> None: ...


def only_rest_is_left(kernel: Kernel) -> bool:
    """Whether no table has anything to load, except derived ones that wait for a whole update."""
    return all(
        task.state == IDLE
        or (task.state == WAITING and not task.intake.backlogged(task.freshness, task.period_us))
        for task in tables_of(kernel)
    )


def nothing_is_left(kernel: Kernel, given_up: Callable[[str], bool]) -> bool:
    """Whether no table has anything to load, except those given up after many failures."""
    return all(
        task.state == IDLE or (task.state == BACKED_OFF and given_up(task.name)) for task in tables_of(kernel)
    )


def _drain(task: TableTask, now: int) -> None:
    for source in task.intake.sources:
        if task not in source.dependents:  # only the clock released it
            source.dependents.append(task)
    task.period_now_us = task.period_us
    if not isinstance(task.rule, LeavingRelease):
        task.rule = DrainingRelease(task, now)
        if task.state in (WAITING, READY):
            task.state = IDLE  # released anew, if there is anything to load
    elif task.state == READY:
        task.pool.add(task)


def _has_work_upstream(task: TableTask) -> bool:
    """Whether any table upstream, at any distance, has an update that waits or runs."""
    seen: set[str] = set()
    above = [*task.reads]
    while above:
        source = above.pop()
        if source.at_work:
            return True
        if source.name not in seen:
            seen.add(source.name)
            above += source.reads
    return False
