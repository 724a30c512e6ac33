"""LRM as in paper 000: each query reads a share of its windows, until the next schedule."""

from __future__ import annotations

from fractions import Fraction

from freshline.kernel.core.task import Task
from freshline.kernel.policies.rm import RateMonotonic
from freshline.kernel.queries.iteration import WHOLE, Allowance
from freshline.kernel.queries.shedding import Shedding
from freshline.kernel.queries.task import QueryTask
from freshline.planning.analysis.levels import is_schedulable
from freshline.planning.analysis.shedding import keep, shed


class LrmPaper(RateMonotonic[QueryTask], Shedding):
    """If the queries do not fit, each reads a share of its window, by the paper's rule.

    The share applies to whatever a window holds: in a burst, iterations take longer than expected, and
    deadlines are missed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.controller = self
        self._keep: dict[str, Fraction] = {}  # by query
        self._queries: dict[str, QueryTask] = {}

    def joined(self, task: Task) -> None:
        assert isinstance(task, QueryTask)
        self._queries[task.name] = task

    def left(self, task: Task) -> None:
        super().left(task)
        del self._queries[task.name]
        self._keep.pop(task.name, None)

    def allowance(self, task: QueryTask) -> Allowance:
        share = self._keep.get(task.name, WHOLE.keep)
        return WHOLE._replace(keep=share)

    def reschedule(self, now: int) -> None:
        loads = [task.load for task in sorted(self._queries.values(), key=lambda task: task.place)]
        if is_schedulable(loads):
            self._keep = {}
            return
        costs_us = shed(loads, "paper")
        if costs_us is None:  # not even the least costs fit
            costs_us = [load.least_us for load in loads]
        self._keep = {
            load.name: max(Fraction(0), keep(load, cost_us))
            for load, cost_us in zip(loads, costs_us, strict=True)
        }
