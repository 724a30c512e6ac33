"""A continuous query as the kernel sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from freshline.kernel.core.job import Job
from freshline.kernel.core.task import BACKED_OFF, IDLE, READY, RUNNING, QueueingTask
from freshline.kernel.queries.iteration import WHOLE, HeldBack, Iteration, ReleasedIteration
from freshline.kernel.queries.shedding import shedding_of
from freshline.planning.analysis.levels import QueryLoad

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.queries.membership import LeavingQuery
    from freshline.kernel.queries.query_spec import QueryMeasure, QuerySpec
    from freshline.kernel.queries.release import EveryStride
    from freshline.kernel.tables.source import Source


class QueryTask(QueueingTask):
    """A query. Its iterations run one after another, late ones too."""

    __slots__ = ("asked", "deadline_us", "leaving", "load", "sources", "stride_us", "window_us")

    rule: EveryStride
    job: Iteration | None
    waiting: deque[ReleasedIteration]

    def __init__(self, place: int, asked: QuerySpec, sources: Sequence[Source]) -> None:
        super().__init__(place, asked.name)
        self.asked = asked
        self.stride_us = asked.stride_us
        self.deadline_us = asked.deadline_us  # after the release
        self.window_us = asked.window_us
        self.sources = sources  # the tables it reads; none: streams, which are always up to date
        self.load: QueryLoad = asked.load(asked.measure)  # by the last measurement
        self.leaving: LeavingQuery | None = None  # set when it leaves after its last iteration

    def measured(self, measure: QueryMeasure) -> None:
        """Takes a new measurement of its windows and answers."""
        self.load = self.asked.load(measure)

    def released(self, at: int) -> None:
        """Releases an iteration over the current window."""
        shedding = shedding_of(self.pool)
        allowance = WHOLE if shedding is None else shedding.allowance(self)
        window_to = min((table.freshness for table in self.sources), default=at)
        self.waiting.append(ReleasedIteration(at, window_to, allowance, self.held_back()))
        if self.state == IDLE:
            self._next()

    def held_back(self) -> HeldBack | None:
        """The table that ends its windows now, if another one is more than a window further."""
        if len(self.sources) < 2:
            return None
        last = min(self.sources, key=attrgetter("freshness"))
        behind_us = max(table.freshness for table in self.sources) - last.freshness
        return HeldBack(last.name, last.freshness, behind_us) if behind_us > self.window_us else None

    def begin(self, now: int, track: int) -> Iteration:
        self.jobs_started += 1
        self.job = Iteration(self, self.jobs_started, self.waiting.popleft(), now, track)
        self.state = RUNNING
        return self.job

    def answered(self, job: Job, now: int) -> None:
        """Its iteration has ended."""
        assert self.job is job, f"{job!r} is not running"
        assert self.state == RUNNING, f"{job!r} is put aside"
        self.job = None
        pool = self.pool
        pool.release_track(job, now)
        self.state = IDLE
        if self.waiting:
            self._next()
            return
        if self.leaving is not None:
            self.leaving.leave(now)
        shedding = shedding_of(pool)
        if shedding is not None:
            shedding.became_idle(self, now)

    def failed(self, job: Job, now: int) -> None:
        """A failed iteration is over: a retry would take time that other queries were promised."""
        self.answered(job, now)

    def _next(self) -> None:
        self.release = self.waiting[0].at
        self.deadline = self.release + self.deadline_us
        self.state = READY
        self.pool.add(self)

    def validate(self, now: int) -> None:
        super().validate(now)
        assert self.state != BACKED_OFF
        if self.job is not None:
            assert (self.job.release, self.job.deadline) == (self.release, self.deadline)


def queries_of(kernel: Kernel) -> list[QueryTask]:
    """The queries among a kernel's tasks, in the order of definition."""
    return [task for task in kernel.tasks if isinstance(task, QueryTask)]
