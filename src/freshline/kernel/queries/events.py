"""Events of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from freshline.kernel.core.events import Event, JobEvent, Record
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.membership import QueryAdded, QueryRemoved
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.shedding import shedding_of
from freshline.kernel.queries.task import queries_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


@dataclass(slots=True, eq=False)
class IterationFinished(JobEvent):
    """An iteration has ended."""

    word, of = "answered", Iteration
    job: Iteration

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.answered(self.job, now)


@dataclass(slots=True, eq=False)
class LoadMeasured(Event):
    """The content of the queries' last windows and the cost of their answers were measured: reschedule.

    One event has all queries of a pool. The kernel takes it after all ends of iterations of its instant and
    before all releases.
    """

    word = "measured"
    priority = 2
    measures: Mapping[str, QueryMeasure]  # by query

    def take(self, kernel: Kernel, now: int) -> None:
        pools = {}
        for task in queries_of(kernel):
            if task.name in self.measures:  # some may have left
                task.measured(self.measures[task.name])
                pools[task.pool.name] = task.pool
        for pool in pools.values():
            shedding = shedding_of(pool)
            if shedding is not None:
                shedding.reschedule(now)

    def record(self) -> Record:
        return {self.word: {name: measure.record() for name, measure in self.measures.items()}}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        measures = record[cls.word].items()
        return cls({name: QueryMeasure.from_record(measure) for name, measure in measures})


EVENTS: Final[tuple[type[Event], ...]] = (IterationFinished, LoadMeasured, QueryAdded, QueryRemoved)
