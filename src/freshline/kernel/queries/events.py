"""What happens to queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.shedding import shedding_of
from freshline.kernel.queries.task import queries_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class IterationFinished(Event):
    """An iteration has ended."""

    __slots__ = ("job",)

    def __init__(self, job: Iteration) -> None:
        self.job = job

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.answered(self.job, now)

    def record(self) -> Record:
        return {"answered": self.job.task.name, "job": self.job.number}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        job = kernel.running(record["answered"], record["job"])
        assert isinstance(job, Iteration), f"{job!r} is not of a query"
        return cls(job)

    def __repr__(self) -> str:
        return f"Answered({self.job!r})"


class LoadMeasured(Event):
    """It was looked at what the queries' last windows hold and their answers cost: time to reschedule.

    All of a pool are told at once. It is taken when all iterations of its instant have ended, and before any
    release of it.
    """

    __slots__ = ("measures",)
    priority: ClassVar[int] = 2

    def __init__(self, measures: Mapping[str, QueryMeasure]) -> None:
        self.measures = measures  # by query

    def take(self, kernel: Kernel, now: int) -> None:
        pools = {}
        for task in queries_of(kernel):
            if task.name in self.measures:  # others may have gone
                task.measured(self.measures[task.name])
                pools[task.pool.name] = task.pool
        for pool in pools.values():
            shedding = shedding_of(pool)
            if shedding is not None:
                shedding.reschedule(now)

    def record(self) -> Record:
        return {"measured": {name: measure.record() for name, measure in self.measures.items()}}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        measures = record["measured"].items()
        return cls({name: QueryMeasure.from_record(measure) for name, measure in measures})

    def __repr__(self) -> str:
        return f"Measured({', '.join(self.measures)})"
