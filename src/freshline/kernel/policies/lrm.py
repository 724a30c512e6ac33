"""LRM with budgets: no deadline is missed, whatever the load (docs/lrm.md)."""

from __future__ import annotations

from collections.abc import Sequence

from freshline.kernel.core.task import Task
from freshline.kernel.policies.rm import RateMonotonic
from freshline.kernel.queries.iteration import WHOLE, Allowance
from freshline.kernel.queries.membership import JoiningQuery
from freshline.kernel.queries.shedding import Shedding
from freshline.kernel.queries.task import QueryTask
from freshline.planning.analysis.levels import QueryLoad, is_schedulable
from freshline.planning.analysis.shedding import raised, shed


class Lrm(RateMonotonic[QueryTask], Shedding):
    """Each iteration has a budget of time, whatever its window holds; budgets together pass the exact test.

    A lower budget counts from the next release. A higher one, and a new query, count from the next quiet
    instant: an instant at which no released iteration is unfinished.
    """

    def __init__(self) -> None:
        super().__init__()
        self.controller = self
        self._queries: dict[str, QueryTask] = {}
        self._budgets_us: dict[str, int] = {}  # of the iterations that are released now
        # Budgets from the next quiet instant on; None: not computed yet.
        self._aims_us: dict[str, int] | None = None
        self._busy: set[str] = set()  # queries with an iteration that is released and unfinished
        self._coming: list[JoiningQuery] = []
        self._refused = False  # the joining queries did not fit, and no measurement has come since

    def joined(self, task: Task) -> None:
        assert isinstance(task, QueryTask)
        assert not self._busy, f"{task!r} comes to queries that are at work"
        self._queries[task.name] = task
        self._aims_us = None

    def left(self, task: Task) -> None:
        super().left(task)
        del self._queries[task.name]
        self._busy.discard(task.name)

    def allowance(self, task: QueryTask) -> Allowance:
        if self._aims_us is None:
            self._settle()
        self._busy.add(task.name)
        return WHOLE._replace(budget_us=self._budgets_us[task.name])

    def became_idle(self, task: QueryTask, now: int) -> None:
        self._busy.discard(task.name)
        if not self._busy:
            self._quiet(now)

    def reschedule(self, now: int) -> None:
        self._refused = False
        aims_us = budgets_us(self._loads())
        if aims_us is None:
            return  # budgets stay as they are, so no deadline is missed
        self._aims_us = aims_us
        if self._busy:
            for name, aim_us in aims_us.items():
                self._budgets_us[name] = min(self._budgets_us[name], aim_us)
        else:
            self._quiet(now)

    def comes(self, coming: JoiningQuery, now: int) -> None:
        self._refused = False
        self._coming.append(coming)
        if not self._busy:
            self._quiet(now)

    def goes(self, name: str) -> None:
        self._coming = [coming for coming in self._coming if coming.asked.name != name]

    def _quiet(self, now: int) -> None:
        if self._coming and not self._refused:
            for coming in self._coming[:]:
                asked = coming.asked
                if budgets_us([*self._loads(), asked.load(asked.measure)]) is not None:
                    self._coming.remove(coming)
                    coming.join(now)
            self._refused = bool(self._coming)
        self._settle()

    def _settle(self) -> None:
        if self._aims_us is None:
            loads = self._loads()
            self._aims_us = budgets_us(loads) or least_budgets_us(loads)
        self._budgets_us = dict(self._aims_us)

    def _loads(self) -> list[QueryLoad]:
        return [task.load for task in sorted(self._queries.values(), key=lambda task: task.place)]


def budgets_us(loads: Sequence[QueryLoad]) -> dict[str, int] | None:
    """By query: what an iteration may take; None if not even the least costs fit.

    Budgets are raised as far as they fit; otherwise the least noise would shed.
    """
    costs_us = [load.cost_us for load in loads]
    if not is_schedulable(loads):
        shed_us = shed(loads, "least-error")
        if shed_us is None:
            return None
        costs_us = shed_us
    names = [load.name for load in loads]
    return dict(zip(names, raised(loads, costs_us), strict=True))


def least_budgets_us(loads: Sequence[QueryLoad]) -> dict[str, int]:
    """Budgets below the least costs, if those do not fit."""
    if not is_schedulable(loads, [1] * len(loads)):
        # A part is longer than some query's deadline: what waits for it is late, whatever is shed.
        loads = [load._replace(part_us=0) for load in loads]
    costs_us = [load.least_us for load in loads]
    while not is_schedulable(loads, costs_us):
        costs_us = [max(1, cost_us // 2) for cost_us in costs_us]
    return dict(zip([load.name for load in loads], raised(loads, costs_us), strict=True))
