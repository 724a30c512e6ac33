"""The order in which a node runs ready steps."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from freshline.definitions.sections.nodes import NodePolicy
from freshline.kernel.core.job import Job
from freshline.kernel.core.order import Order, ReadyJob
from freshline.kernel.core.task import Task
from freshline.kernel.steps.task import StepTask


class _ByInstance(Order[StepTask]):
    """Orders by two keys of the next instance; ties go by the order of definition.

    Recovery goes after all other work, the oldest data first: so a late output gets its rows one after
    another, not all at the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[tuple[bool, int, int, int, StepTask]] = []

    def keys(self, step: StepTask) -> tuple[int, int]:
        raise NotImplementedError

    def _rank(self, step: StepTask) -> tuple[bool, int, int, int]:
        first = step.parts[0].instance
        keys = (first.loaded_to, first.ready) if first.recovery else self.keys(step)
        return first.recovery, *keys, step.place

    def add(self, entry: StepTask) -> None:
        heappush(self._steps, (*self._rank(entry), entry))

    def left(self, task: Task) -> None:
        self._steps = [ready for ready in self._steps if ready[-1] is not task]
        heapify(self._steps)

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        return heappop(self._steps)[-1] if self._steps else None

    def goes_before(self, job: Job) -> bool:
        assert isinstance(job.task, StepTask)
        return bool(self._steps) and self._steps[0][:-1] < self._rank(job.task)

    def ready(self) -> list[StepTask]:
        return [ready[-1] for ready in self._steps]


class EarliestStep(_ByInstance):
    """The instance with the earliest deadline goes first, decided anew after every step (paper 002, 5.4)."""

    def keys(self, step: StepTask) -> tuple[int, int]:
        return step.deadline, step.release


class OldestStep(_ByInstance):
    """The first burst goes first, all of it through one step before the next (paper 002's FIFO).

    Files that come to a source within a period of its feed are one burst: otherwise a source that never rests
    would always go first.
    """

    def keys(self, step: StepTask) -> tuple[int, int]:
        return step.parts[0].instance.came_at, step.parts[0].instance.ready


_ORDERS: Final[Mapping[NodePolicy, type[_ByInstance]]] = {"edf": EarliestStep, "fifo": OldestStep}


def order_of(policy: NodePolicy) -> Order[StepTask]:
    """The order of a node with that policy."""
    return _ORDERS[policy]()
