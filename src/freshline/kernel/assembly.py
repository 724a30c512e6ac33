"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from freshline.costs.bounds import worst_case_us
from freshline.definitions.duration import SECOND
from freshline.definitions.policies import POLICIES, PolicyName
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.events import Learned, LearnedCost
from freshline.kernel.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.kernel.kernel import Kernel
from freshline.kernel.pool import Pool
from freshline.kernel.recovery import AdaptiveRelease, Terms
from freshline.kernel.release import PeriodicRelease, RememberingRelease, StaleRelease
from freshline.kernel.task import Task
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.policies.order import Order, Setting

# A file is found so long after it came at most, on a machine that has other things to do.
_FINDING_US = SECOND


def assemble(plan: Plan, now: int = 0, freshness: Mapping[str, int | None] | None = None) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet.
    """
    kernel = Kernel()
    _add_tasks(kernel, plan, freshness)
    for pool in plan.pools:
        _add_pool(kernel, pool, plan.tables)
    kernel.begin(now)
    return kernel


def learned(kernel: Kernel, plan: Plan, live: bool = True) -> Learned:
    """What a plan with more costs says beyond the one that the kernel was assembled from.

    A bound that the kernel knows stays as it is: what tables recover by does not change under them.
    """
    index_of = {name: index for index, name in enumerate(plan.warehouse.tables)}
    tables: dict[str, LearnedCost] = {}
    for task, planned in zip(kernel.tasks, plan.tables, strict=True):
        table = plan.warehouse.tables[task.name]
        terms = None
        if isinstance(task.rule, RememberingRelease) and not isinstance(task.rule, AdaptiveRelease):
            terms = _terms(plan, table, planned, index_of, live)
        startup_us = _startup_us(table)
        if terms is not None or (planned.cost_us, startup_us) != (task.worst_case_us, task.startup_us):
            tables[task.name] = LearnedCost(planned.cost_us, startup_us, planned.provisioned_us, terms)
    return Learned(tables)


def _add_tasks(kernel: Kernel, plan: Plan, freshness: Mapping[str, int | None] | None) -> None:
    warehouse = plan.warehouse
    index_of = {name: index for index, name in enumerate(warehouse.tables)}
    tasks: dict[str, Task] = {}
    for name in warehouse.topological_order:
        table = warehouse.tables[name]
        intake = _intake(warehouse, table, tasks)
        planned = plan.tables[index_of[name]]
        task = Task(index_of[name], name, table.period_us, planned.cost_us, intake, _startup_us(table))
        if freshness is not None:
            task.freshness = freshness[name] or 0
            task.empty = freshness[name] is None
            if isinstance(intake, FileIntake):
                intake.newest = task.freshness
        tasks[name] = task
        if name not in warehouse.released_by_files:
            task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
            continue
        terms = _terms(plan, table, planned, index_of, live=freshness is not None)
        if terms is not None:
            task.rule = AdaptiveRelease(task, kernel.timers, terms)
        elif POLICIES[warehouse.pools[table.pool].policy].adaptive:
            phase_us = 0 if table.feed is None else warehouse.feeds[table.feed].phase_us
            task.rule = RememberingRelease(task, kernel.timers, phase_us)
        else:
            task.rule = StaleRelease(task, kernel.timers)
        for source in table.sources:
            tasks[source].dependents.append(task)
        if table.feed is not None:
            kernel.readers.setdefault(table.feed, []).append(task)
    kernel.tasks = [tasks[name] for name in warehouse.tables]


def _startup_us(table: Table) -> int:
    return worst_case_us(table.cost, 0) if table.cost and table.cost.startup_us else 0


def _terms(
    plan: Plan, table: Table, planned: TablePlan, index_of: Mapping[str, int], live: bool
) -> Terms | None:
    """On which terms a table recovers; None where its policy has no recovery, or nothing is bounded."""
    cost_us, period_us = planned.provisioned_us, planned.recovery_period_us
    response_us, bound_us = planned.response_bound_us, planned.staleness_bound_us
    if cost_us is None or period_us is None or response_us is None or bound_us is None:
        return None
    feed = None if table.feed is None else plan.warehouse.feeds[table.feed]
    return Terms(
        cost_us,
        period_us,
        table.late_after_us or bound_us,
        response_us,
        0 if feed is None else feed.jitter_us,
        min(_FINDING_US, table.period_us // 4) if live else 0,
        0 if feed is None else feed.phase_us,
        table.weight,
        tuple(plan.tables[index_of[source]].staleness_bound_us for source in table.sources),
        table.align_us or 0,
    )


def _intake(warehouse: Warehouse, table: Table, tasks: dict[str, Task]) -> Intake:
    if table.feed is None:
        return DerivedIntake([tasks[source] for source in table.sources], table.align_us)
    if warehouse.feeds[table.feed].arrival == "continuous":
        return ContinuousIntake()
    return FileIntake()


def _add_pool(kernel: Kernel, plan: PoolPlan, tables: Sequence[TablePlan]) -> None:
    if POLICIES[plan.policy].clusters == "isolated" and plan.clusters is not None:
        # Clusters are pools of their own: nothing passes between them (paper 004, section 4.2).
        for number, cluster in enumerate(plan.clusters, start=1):
            members = tuple(plan.tables[member] for member in cluster.members)
            name = f"{plan.name}/{number}"
            own = replace(plan, name=name, tracks=cluster.tracks, tables=members, clusters=None)
            _add_pool(kernel, own, tables)
        return
    tracks_from = sum(pool.tracks for pool in kernel.pools)
    setting = Setting(plan, tables, kernel.tasks, kernel.timers, tracks_from)
    order = _order_kind(plan.policy).made_for(setting)
    pool = Pool(plan.name, plan.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for member in plan.tables:
        kernel.tasks[member].pool = pool


def _order_kind(policy: PolicyName) -> type[Order]:
    module, _, name = POLICIES[policy].order.partition(":")
    kind: type[Order] = getattr(import_module(module), name)
    return kind
