"""Adds the tables of a plan to a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from freshline.definitions.language.policies import POLICIES
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.context import Assembly
from freshline.kernel.assembly.terms import startup_us, terms_of
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.steps.task import steps_of
from freshline.kernel.tables.source import Source
from freshline.kernel.tables.table_spec import TableSpec, make_task
from freshline.kernel.tables.task import TableTask
from freshline.planning.plan.plan import TablePlan


def add_table_tasks(assembly: Assembly) -> None:
    """Adds the tables whose pools run here; tables of other nodes that they read become remote tables."""
    kernel, warehouse, plans = assembly.kernel, assembly.warehouse, assembly.plan.tables_by_name
    here = {name for pool in assembly.pools for name in pool.tables}
    place_of = {name: place for place, name in enumerate(warehouse.tables, len(warehouse.steps))}
    sources: dict[str, Source] = {step.name: step for step in steps_of(kernel)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        if name not in here:
            continue
        found = 0 if assembly.freshness is None else assembly.freshness[name]
        table = table_spec(warehouse, plans[name], found)
        read = [sources.get(source) or assembly.elsewhere(source) for source in table.sources]
        task = make_task(kernel, table, place_of[name], read)
        if table.released_by_files and POLICIES[warehouse.pools[table.pool].policy].adaptive:
            task.rule = _recovery_rule(assembly, task, plans)
        tasks[name] = sources[name] = task
    for name in warehouse.tables:
        if name in tasks:
            kernel.add(tasks[name])


def table_spec(warehouse: Warehouse, planned: TablePlan, freshness: int | None) -> TableSpec:
    """A planned table as a kernel needs it."""
    table = warehouse.tables[planned.name]
    return TableSpec(
        table.name,
        table.pool,
        table.period_us,
        planned.cost_us,
        table.feed,
        "files" if table.feed is None else warehouse.feeds[table.feed].arrival,
        table.sources,
        table.name in warehouse.released_by_files,
        table.align_us,
        table.phase_us,
        startup_us(table),
        freshness,
    )


def _recovery_rule(assembly: Assembly, task: TableTask, plans: Mapping[str, TablePlan]) -> RememberingRelease:
    """The release rule of a table whose policy has a recovery mode, now or once its bound is known."""
    warehouse, timers = assembly.warehouse, assembly.kernel.timers
    terms = terms_of(assembly.plan, plans, task.name, assembly.live)
    if terms is not None:
        return AdaptiveRelease(task, timers, terms)
    feed = warehouse.tables[task.name].feed
    return RememberingRelease(task, timers, 0 if feed is None else warehouse.feeds[feed].phase_us)
