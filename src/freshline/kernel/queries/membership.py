"""Queries that join and leave a kernel while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.task import IDLE, READY
from freshline.kernel.queries.query_spec import QuerySpec, join, pool_of
from freshline.kernel.queries.shedding import shedding_of
from freshline.kernel.queries.task import QueryTask, queries_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class JoiningQuery:
    """A query that is about to join its pool."""

    __slots__ = ("_kernel", "asked")

    def __init__(self, kernel: Kernel, asked: QuerySpec) -> None:
        self._kernel = kernel
        self.asked = asked

    def come(self, now: int) -> None:
        """Joins as soon as that harms no other query."""
        shedding = shedding_of(pool_of(self._kernel, self.asked))
        if shedding is None:
            self.join(now)
        else:
            shedding.comes(self, now)

    def join(self, now: int) -> None:
        """Joins now. The first iteration is released at the next multiple of the stride."""
        join(self._kernel, self.asked).rule.begin(now)


class LeavingQuery:
    """A query that leaves when its current iteration has ended."""

    __slots__ = ("_kernel", "_task", "successor")

    def __init__(self, kernel: Kernel, task: QueryTask) -> None:
        self._kernel = kernel
        self._task = task
        self.successor: JoiningQuery | None = None  # of the same name

    def leave(self, now: int) -> None:
        self._kernel.remove(self._task)
        if self.successor is not None:
            self.successor.come(now)


@dataclass(slots=True, eq=False)
class QueryAdded(Event):
    """A query was added and admitted. It joins as soon as that harms no other query."""

    word = "query_added"
    priority = 2
    asked: QuerySpec

    def take(self, kernel: Kernel, now: int) -> None:
        coming = JoiningQuery(kernel, self.asked)
        task = _find(kernel, self.asked.name)
        if task is None:
            coming.come(now)
        else:
            assert task.leaving is not None, f"a second {task!r}"
            task.leaving.successor = coming

    def record(self) -> Record:
        return {self.word: self.asked.name, "query": self.asked.record()}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(QuerySpec.from_record(record["query"]))


@dataclass(slots=True, eq=False)
class QueryRemoved(Event):
    """A query was removed. It leaves at once, or when its current iteration has ended."""

    word = "query_removed"
    keys = (("name", word),)
    priority = 2
    name: str

    def take(self, kernel: Kernel, now: int) -> None:
        task = _find(kernel, self.name)
        if task is None:
            for pool in kernel.pools:
                shedding = shedding_of(pool)
                if shedding is not None:
                    shedding.goes(self.name)
        elif task.leaving is not None:
            task.leaving.successor = None
        else:
            kernel.timers.drop(task.rule)
            task.waiting.clear()
            task.leaving = LeavingQuery(kernel, task)
            if task.state in (IDLE, READY):
                task.leaving.leave(now)
                shedding = shedding_of(task.pool)
                if shedding is not None:
                    shedding.became_idle(task, now)


def _find(kernel: Kernel, name: str) -> QueryTask | None:
    return next((task for task in queries_of(kernel) if task.name == name), None)
