"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping
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
from freshline.plan.plan import Plan, PoolPlan
from freshline.recovery.modes import AdaptiveRelease
from freshline.recovery.outages import RememberingRelease
from freshline.tables.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.tables.release import PeriodicRelease, StaleRelease
from freshline.tables.task import TableTask


def assemble(plan: Plan, now: int = 0, freshness: Mapping[str, int | None] | None = None) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet.
    """
    kernel = Kernel()
    _add_tasks(kernel, plan, freshness)
    for pool in plan.pools:
        _add_pool(kernel, pool, plan)
    kernel.begin(now)
    return kernel


def _add_tasks(kernel: Kernel, plan: Plan, freshness: Mapping[str, int | None] | None) -> None:
    warehouse = plan.warehouse
    plans = plan.tables_by_name
    place_of = {name: place for place, name in enumerate(warehouse.tables)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        table = warehouse.tables[name]
        intake = _intake(warehouse, table, tasks)
        cost_us = plans[name].cost_us
        task = TableTask(place_of[name], name, table.period_us, cost_us, intake, startup_us(table))
        if freshness is not None:
            task.freshness = freshness[name] or 0
            task.empty = freshness[name] is None
            intake.seen(task.freshness)
        tasks[name] = task
        if name not in warehouse.released_by_files:
            task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
            continue
        terms = terms_of(warehouse, plans, name, live=freshness is not None)
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


def _add_pool(kernel: Kernel, planned: PoolPlan, plan: Plan) -> None:
    if POLICIES[planned.policy].clusters == "isolated" and planned.clusters is not None:
        # Clusters are pools of their own: nothing passes between them (paper 004, section 4.2).
        for number, cluster in enumerate(planned.clusters, start=1):
            name = f"{planned.name}/{number}"
            own = replace(planned, name=name, tracks=cluster.tracks, tables=cluster.tables, clusters=None)
            _add_pool(kernel, own, plan)
        return
    tracks_from = sum(pool.tracks for pool in kernel.pools)
    order = _order_kind(planned.policy).made_for(Setting(planned, plan, kernel.timers, tracks_from))
    pool = Pool(planned.name, planned.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for name in planned.tables:
        pool.join(kernel.task(name))


def _order_kind(policy: PolicyName) -> type[Order[Any]]:
    module, _, name = POLICIES[policy].order.partition(":")
    kind: type[Order[Any]] = getattr(import_module(module), name)
    return kind
