"""The costs of updates, learned by earlier runs and by this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from freshline.base.duration import SECOND
from freshline.definitions.sections.cost import Cost
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.batches import BatchCost
from freshline.kernel.tables.events import BatchCostsLearned
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.planning.costs.batches import fit_batches, fit_single_files
from freshline.planning.costs.fit import RUNS_LEAST
from freshline.planning.costs.learned import learned_costs
from freshline.planning.costs.learned_queries import with_known_costs
from freshline.planning.plan.make import make_plan, without_bounds
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.history import History

_LEARN_EVERY_US = 10 * SECOND
_BATCHES_EVERY_US = 2 * SECOND
# The assumed cost of a table that has never run: neither it nor its pool gets a bound.
_PROVISIONAL = Cost(SECOND, Fraction(1, 10), loaded=True)


class LearnedPlan:
    """The plan with declared and learned costs. `unknown` tables have neither and get no bound."""

    def __init__(self, declared: Warehouse, history: History, placed: StepPlacement | None = None) -> None:
        self._declared = with_known_costs(declared, history)
        self._history = history
        self._placed = placed
        self._look_at = 0
        self._look_at_batches = 0
        self.plan, self.unknown = self._make_plan(self._declared)

    def _look(self, now: int) -> bool:
        """Checks at intervals whether costs have become known; then makes a new plan and returns True."""
        if not self.unknown or now < self._look_at:
            return False
        self._look_at = now + _LEARN_EVERY_US
        # Checked first: looking up a table with few runs is cheap, fitting all the others is not.
        if not any(len(self._history.runs(name)) >= RUNS_LEAST for name in self.unknown):
            return False
        plan, unknown = self._make_plan(self._settled())
        if unknown == self.unknown:
            return False
        self.plan, self.unknown = plan, unknown
        return True

    def events(self, now: int, kernel: Kernel) -> list[Event]:
        """The events for the kernel if costs, and with them bounds, have become known."""
        events: list[Event] = [learned(kernel, self.plan)] if self._look(now) else []
        batches = self._batches(now, tables_of(kernel))
        return [*events, BatchCostsLearned(batches)] if batches else events

    def _batches(self, now: int, tasks: Iterable[TableTask]) -> dict[str, BatchCost]:
        """At intervals, the changed costs of batches, for tables that may start batches."""
        if now < self._look_at_batches:
            return {}
        self._look_at_batches = now + _BATCHES_EVERY_US
        costs: dict[str, BatchCost] = {}
        for task in tasks:
            if len(task.intake.waiting_files()) > 1:
                runs = self._history.runs(task.name)
                fitted = fit_batches(runs) or fit_single_files(runs)
                if fitted is not None:
                    cost = BatchCost(*fitted)
                    if cost != task.batch_cost:
                        costs[task.name] = cost
        return costs

    def _make_plan(self, warehouse: Warehouse) -> tuple[Plan, frozenset[str]]:
        found = learned_costs(warehouse, self._history)
        unknown = frozenset(name for name, table in found.warehouse.tables.items() if table.cost is None)
        tables = {
            name: replace(table, cost=table.cost or _PROVISIONAL)
            for name, table in found.warehouse.tables.items()
        }
        plan = make_plan(replace(found.warehouse, tables=tables), found.runs, self._placed)
        return without_bounds(plan, unknown), unknown

    def _settled(self) -> Warehouse:
        """The warehouse with declared costs, and learned ones for pools in which every cost is known."""
        open_pools = {self._declared.tables[name].pool for name in self.unknown}
        counted = self.plan.warehouse.tables
        tables = {
            name: table if table.pool in open_pools else replace(table, cost=counted[name].cost)
            for name, table in self._declared.tables.items()
        }
        return replace(self._declared, tables=tables)
