"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from freshline.definitions.language.policies import POLICIES
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.order_kinds import order_kind
from freshline.kernel.assembly.query_tracks import add_query_tracks, asked_of, holds_queries_only
from freshline.kernel.assembly.step_tasks import add_node_pools, add_step_tasks, elsewhere
from freshline.kernel.assembly.terms import startup_us, terms_of
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.order import OrderContext
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.timers import NEVER
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.requests.task import ClassTask
from freshline.kernel.steps.task import steps_of
from freshline.kernel.tables.source import Source
from freshline.kernel.tables.table_spec import TableSpec, make_task
from freshline.kernel.tables.task import TableTask
from freshline.planning.plan.plan import Plan, PoolPlan, TablePlan


def assemble(
    plan: Plan,
    now: int = 0,
    freshness: Mapping[str, int | None] | None = None,
    tracks_from: int = 0,
    live: bool | None = None,
    batches: bool = True,
    begin: bool = True,
    node: str | None = None,
) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet.
    `tracks_from` is the number of its first track. `live` says whether files take a moment to be found; by
    default they do where tables were found. `batches`: a job may take several files of a backlog.
    Who does not want it begun calls `Kernel.begin` later. `node`: only what runs there; what it reads beyond
    is told by `Advanced`.
    """
    kernel = Kernel()
    warehouse = plan.warehouse
    if plan.placed is not None:
        add_step_tasks(kernel, warehouse, plan.placed, freshness, node)
    here = [pool for pool in plan.pools if node is None or warehouse.pools[pool.name].node == node]
    tables = {name for pool in here for name in pool.tables}
    _add_tables(kernel, plan, tables, freshness, freshness is not None if live is None else live)
    _add_classes(kernel, plan, {pool.name for pool in here})
    for pool in here:
        if pool.queries or holds_queries_only(plan.warehouse.pools[pool.name]):
            _add_queries(kernel, pool, plan, tracks_from, freshness)
        else:
            _add_pool(kernel, pool, plan, tracks_from)
    if plan.placed is not None:
        add_node_pools(kernel, warehouse, plan.placed, tracks_from, node)
    if not batches:
        for assembled in kernel.pools:
            assembled.order.batch_limit_us = assembled.order.released_limit_us = 0
    if begin:
        kernel.begin(now)
    return kernel


def newcomer(warehouse: Warehouse, planned: TablePlan, freshness: int | None) -> TableSpec:
    """A planned table as a kernel hears of it."""
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


def _add_queries(
    kernel: Kernel,
    planned: PoolPlan,
    plan: Plan,
    first_track: int,
    freshness: Mapping[str, int | None] | None,
) -> None:
    """The queries of a pool, but for those that are refused."""
    here = {task.name for task in kernel.tasks}
    for name in planned.queries:
        for table in plan.warehouse.queries[name].tables:
            if table not in here:
                elsewhere(kernel, table, freshness)
    tracks_from = first_track + sum(pool.tracks for pool in kernel.pools)
    queries = [
        asked_of(plan.warehouse.queries[query.name], query.load, query.track)
        for query in plan.queries
        if query.pool == planned.name and query.track is not None
    ]
    add_query_tracks(kernel, plan.warehouse.pools[planned.name], queries, tracks_from)


def _add_tables(
    kernel: Kernel, plan: Plan, here: Collection[str], freshness: Mapping[str, int | None] | None, live: bool
) -> None:
    warehouse = plan.warehouse
    plans = plan.tables_by_name
    place_of = {name: place for place, name in enumerate(warehouse.tables, len(warehouse.steps))}
    sources: dict[str, Source] = {step.name: step for step in steps_of(kernel)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        if name not in here:
            continue
        table = newcomer(warehouse, plans[name], 0 if freshness is None else freshness[name])
        read = [sources.get(source) or elsewhere(kernel, source, freshness) for source in table.sources]
        task = make_task(kernel, table, place_of[name], read)
        if table.released_by_files and POLICIES[warehouse.pools[table.pool].policy].adaptive:
            task.rule = _recovery_rule(kernel, task, warehouse, plans, live)
        tasks[name] = sources[name] = task
    for name in warehouse.tables:
        if name in tasks:
            kernel.add(tasks[name])


def _add_classes(kernel: Kernel, plan: Plan, pools: Collection[str]) -> None:
    warehouse = plan.warehouse
    place = len(warehouse.stored) + len(warehouse.queries)
    for number, (name, defined) in enumerate(warehouse.classes.items()):
        if defined.pool in pools:
            kernel.add(ClassTask(place + number, name, kernel.timers, kernel.outbox))


def _recovery_rule(
    kernel: Kernel, task: TableTask, warehouse: Warehouse, plans: Mapping[str, TablePlan], live: bool
) -> RememberingRelease:
    """The release rule of a table whose policy gives it a recovery mode, now or once its bound is known."""
    terms = terms_of(warehouse, plans, task.name, live)
    if terms is not None:
        return AdaptiveRelease(task, kernel.timers, terms)
    feed = warehouse.tables[task.name].feed
    return RememberingRelease(task, kernel.timers, 0 if feed is None else warehouse.feeds[feed].phase_us)


def _add_pool(kernel: Kernel, planned: PoolPlan, plan: Plan, first_track: int) -> None:
    if POLICIES[planned.policy].clusters == "isolated" and planned.clusters is not None:
        # Clusters are pools of their own: nothing passes between them (paper 004, section 4.2).
        for number, cluster in enumerate(planned.clusters, start=1):
            name = f"{planned.name}/{number}"
            own = replace(
                planned,
                name=name,
                tracks=cluster.tracks,
                tables=cluster.tables,
                clusters=None,
                batch_limit_us=cluster.batch_limit_us,
            )
            _add_pool(kernel, own, plan, first_track)
        return
    tracks_from = first_track + sum(pool.tracks for pool in kernel.pools)
    order = order_kind(planned.policy).made_for(OrderContext(planned, plan, kernel.timers, tracks_from))
    order.batch_limit_us = NEVER if planned.batch_limit_us is None else planned.batch_limit_us
    # Where nothing is proven there is nothing to be broken: a table's own period alone counts.
    order.released_limit_us = None if POLICIES[planned.policy].proven else NEVER
    pool = TrackPool(planned.name, planned.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for name in (*planned.tables, *planned.classes):
        pool.join(kernel.task(name))
