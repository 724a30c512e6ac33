"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from freshline.assembly.terms import startup_us, terms_of
from freshline.definitions.policies import POLICIES, PolicyName
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.kernel import Kernel
from freshline.kernel.order import Order, Setting
from freshline.kernel.pool import Pool
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.recovery.modes import AdaptiveRelease
from freshline.recovery.outages import RememberingRelease
from freshline.tables.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.tables.release import PeriodicRelease, StaleRelease
from freshline.tables.task import TableTask


def assemble(
    plan: Plan, now: int = 0, freshness: Mapping[str, int | None] | None = None, live: bool | None = None
) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet. `live`
    says whether files take a moment to be found; by default they do where tables were found.
    """
    kernel = Kernel()
    _add_tasks(kernel, plan, freshness, freshness is not None if live is None else live)
    for pool in plan.pools:
        _add_pool(kernel, pool, plan.tables)
    kernel.begin(now)
    return kernel


def _add_tasks(kernel: Kernel, plan: Plan, freshness: Mapping[str, int | None] | None, live: bool) -> None:
    warehouse = plan.warehouse
    index_of = {name: index for index, name in enumerate(warehouse.tables)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        table = warehouse.tables[name]
        intake = _intake(warehouse, table, tasks)
        planned = plan.tables[index_of[name]]
        task = TableTask(index_of[name], name, table.period_us, planned.cost_us, intake, startup_us(table))
        if freshness is not None:
            task.freshness = freshness[name] or 0
            task.empty = freshness[name] is None
            intake.seen(task.freshness)
        tasks[name] = task
        if name not in warehouse.released_by_files:
            task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
            continue
        terms = terms_of(plan, table, planned, index_of, live)
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
    for name in warehouse.tables:
        kernel.add(tasks[name])


def _intake(warehouse: Warehouse, table: Table, tasks: dict[str, TableTask]) -> Intake:
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
    setting = Setting(plan, tables, kernel.timers, tracks_from)
    order = _order_kind(plan.policy).made_for(setting)
    pool = Pool(plan.name, plan.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for member in plan.tables:
        pool.join(kernel.tasks[member])


def _order_kind(policy: PolicyName) -> type[Order[Any]]:
    module, _, name = POLICIES[policy].order.partition(":")
    kind: type[Order[Any]] = getattr(import_module(module), name)
    return kind
