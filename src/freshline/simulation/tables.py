"""The tables of a warehouse in simulated time: observed beside proven figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.recovery.modes import is_recovering, recovery_rule
from freshline.kernel.recovery.terms import Recovery
from freshline.kernel.tables.state import TableState, exceeds, table_state
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.plan import TablePlan
from freshline.simulation.assertions import Assertions
from freshline.simulation.conditions.gaps import gaps_of_sources
from freshline.simulation.conditions.outages import downstream
from freshline.simulation.kind import SimulationSetup
from freshline.simulation.observation import TableMaxima
from freshline.simulation.updates import SimulatedUpdates, SlowedCosts, UpdateCosts


@dataclass(frozen=True, slots=True)
class TableResult:
    """The observed figures of one table, beside its plan."""

    plan: TablePlan
    staleness_max_us: int
    lag_max_us: int
    jobs: int  # finished
    misses: int  # finished, or unfinished at the end, after the deadline
    state: TableState  # at the end
    # When its lag last fell to a period or less, after something first went wrong. None if it was never above
    # since then, or is at the end.
    recovered_at_us: int | None
    # The worst while its bound was asserted; None if it never was, as with costs above the planned ones.
    asserted_max_us: int | None
    failed: int = 0  # jobs that ended without effect
    recovery: Recovery | None = None  # the last one, of a table with a recovery mode

    @property
    def exceeded_target(self) -> bool:
        return exceeds(self.staleness_max_us, self.plan.target_lag_us)

    @property
    def exceeded_bound(self) -> bool:
        """Whether it was exceeded while asserted: a defect of the analysis or of the kernel."""
        return exceeds(self.asserted_max_us, self.plan.staleness_bound_us)

    @property
    def holds(self) -> bool:
        return not self.exceeded_target


class SimulatedTables(SimulatedUpdates):
    """The updates of all tables of a plan."""

    def __init__(self, setup: SimulationSetup) -> None:
        plan, conditions, warehouse = setup.plan, setup.conditions, setup.plan.warehouse
        self._setup = setup
        # If nothing goes wrong, every bound is asserted throughout, and no job is examined. A table with its
        # own threshold may recover without a fault, and is not asserted then.
        thresholds = any(table.late_after_us is not None for table in warehouse.tables.values())
        crashes = conditions.first_crash < NEVER
        asked = conditions.outages or conditions.failures or crashes or thresholds
        self.assertions = Assertions(plan, conditions.outages) if asked else None
        without_rows = gaps_of_sources(warehouse, conditions.gaps) if conditions.gaps else None
        costs = _costs(warehouse, setup.seed, conditions.slow)
        super().__init__(costs, setup.witness, without_rows, setup.failures, self.assertions)

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self:
        return cls(setup)

    @classmethod
    def can_be_slow(cls, warehouse: Warehouse) -> Iterable[str]:
        return warehouse.stored  # includes steps

    def found(self, kernel: Kernel) -> dict[str, int]:
        return {task.name: task.freshness for task in tables_of(kernel)}

    def results(self, kernel: Kernel, end: int) -> list[TableResult]:
        plan, failures = self._setup.plan, self._setup.failures
        went_wrong = _WentWrong(self._setup, end)
        results = []
        for table, task in zip(plan.tables, tables_of(kernel), strict=True):
            seen = self.observation.tables[task.name]
            lag_us = task.intake.trailing_edge(end) - task.freshness
            recovered = seen.behind_at >= went_wrong.first_at and lag_us <= task.period_us
            rule = recovery_rule(task)
            results.append(
                TableResult(
                    plan=table,
                    staleness_max_us=seen.staleness_max_us,
                    lag_max_us=seen.lag_max_us,
                    jobs=seen.jobs,
                    misses=seen.misses,
                    state=_state(table, task, lag_us, went_wrong),
                    recovered_at_us=seen.behind_at if recovered else None,
                    asserted_max_us=self._asserted_max_us(table, seen),
                    failed=0 if failures is None else failures.count.get(task.name, 0),
                    recovery=None if rule is None else rule.recovery,
                )
            )
        return results

    def _asserted_max_us(self, table: TablePlan, seen: TableMaxima) -> int | None:
        warehouse, conditions = self._setup.plan.warehouse, self._setup.conditions
        slow = any(factor > 1 for name, factor in conditions.slow.items() if name not in warehouse.queries)
        # Bounds of tables assume steps that are in time.
        if table.expected or slow or not warehouse.steps.keys().isdisjoint(conditions.failures):
            return None
        return seen.staleness_max_us if self.assertions is None else self.assertions.max_us(table.name)


class _WentWrong:
    """The faults up to the end of a run, and the tables that they affected."""

    def __init__(self, setup: SimulationSetup, end: int) -> None:
        warehouse, conditions, failures = setup.plan.warehouse, setup.conditions, setup.failures
        begun = {feed: times for feed, times in conditions.outages.items() if times[0][0] <= end}
        instants = [times[0][0] for times in begun.values()]
        instants.append(conditions.first_crash)
        failed: list[str] = []
        self.failing: frozenset[str] = frozenset()
        if failures is not None and failures.first_at is not None:
            instants.append(failures.first_at)
            failed = [name for name, count in failures.count.items() if count]
            self.failing = frozenset(filter(failures.is_failing, failed))
        self.first_at = min(*instants, end + 1)
        self.below_failing = downstream(warehouse, (), self.failing) - self.failing
        crashed = conditions.first_crash < NEVER
        self.affected = downstream(warehouse, begun, warehouse.tables if crashed else failed)
        silent = {feed for feed, times in begun.items() if any(start <= end < over for start, over in times)}
        self.silent = frozenset(name for name, table in warehouse.tables.items() if table.feed in silent)


def _state(table: TablePlan, task: TableTask, lag_us: int, went_wrong: _WentWrong) -> TableState:
    rule = recovery_rule(task)
    return table_state(
        loaded=task.freshness > 0,
        lag_us=lag_us,
        period_us=task.period_us,
        staleness_bound_us=rule.terms.threshold_us if rule else table.staleness_bound_us,
        silent=table.name in went_wrong.silent,
        failed=table.name in went_wrong.failing,
        upstream_failed=table.name in went_wrong.below_failing,
        # A policy with a recovery mode decides itself which tables recover.
        recovering=table.name in went_wrong.affected and rule is None,
        in_recovery=is_recovering(task),
    )


def _costs(warehouse: Warehouse, seed: int, slow: Mapping[str, Fraction]) -> dict[str, UpdateCosts]:
    costs: dict[str, UpdateCosts] = {}
    for name, table in warehouse.tables.items():
        assert table.cost is not None, "a plan has all costs"
        draws = CostDraws(table.cost, seed, name)
        costs[name] = SlowedCosts(draws, slow[name]) if name in slow else draws
    return costs
