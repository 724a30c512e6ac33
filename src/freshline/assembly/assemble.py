"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshline.assembly.order_kinds import order_kind
from freshline.assembly.query_tracks import add_query_tracks, asked_of, holds_queries_only
from freshline.assembly.terms import startup_us, terms_of
from freshline.classes.task import ClassTask
from freshline.definitions.policies import POLICIES
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.kernel import Kernel
from freshline.kernel.order import Setting
from freshline.kernel.pool import Pool
from freshline.kernel.timers import NEVER
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.recovery.modes import AdaptiveRelease
from freshline.recovery.outages import RememberingRelease
from freshline.tables.newcomer import Newcomer, make_task
from freshline.tables.task import TableTask


def assemble(
    plan: Plan,
    now: int = 0,
    freshness: Mapping[str, int | None] | None = None,
    tracks_from: int = 0,
    live: bool | None = None,
    batches: bool = True,
    begin: bool = True,
) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet.
    `tracks_from` is the number of its first track. `live` says whether files take a moment to be found; by
    default they do where tables were found. `batches`: a job may take several files of a backlog.
    Who does not want it begun calls `Kernel.begin` later.
    """
    kernel = Kernel()
    _add_tables(kernel, plan, freshness, freshness is not None if live is None else live)
    _add_classes(kernel, plan)
    for pool in plan.pools:
        if pool.queries or holds_queries_only(plan.warehouse.pools[pool.name]):
            _add_queries(kernel, pool, plan, tracks_from)
        else:
            _add_pool(kernel, pool, plan, tracks_from)
    if not batches:
        for assembled in kernel.pools:
            assembled.order.batch_limit_us = assembled.order.released_limit_us = 0
    if begin:
        kernel.begin(now)
    return kernel


def newcomer(warehouse: Warehouse, planned: TablePlan, freshness: int | None) -> Newcomer:
    """A planned table as a kernel hears of it."""
    table = warehouse.tables[planned.name]
    return Newcomer(
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


def _add_queries(kernel: Kernel, planned: PoolPlan, plan: Plan, first_track: int) -> None:
    """The queries of a pool, but for those that are refused."""
    tracks_from = first_track + sum(pool.tracks for pool in kernel.pools)
    queries = [
        asked_of(plan.warehouse.queries[query.name], query.load, query.track)
        for query in plan.queries
        if query.pool == planned.name and query.track is not None
    ]
    add_query_tracks(kernel, plan.warehouse.pools[planned.name], queries, tracks_from)


def _add_tables(kernel: Kernel, plan: Plan, freshness: Mapping[str, int | None] | None, live: bool) -> None:
    warehouse = plan.warehouse
    plans = plan.tables_by_name
    place_of = {name: place for place, name in enumerate(warehouse.tables)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        table = newcomer(warehouse, plans[name], 0 if freshness is None else freshness[name])
        task = make_task(kernel, table, place_of[name], [tasks[source] for source in table.sources])
        if table.released_by_files and POLICIES[warehouse.pools[table.pool].policy].adaptive:
            task.rule = _recovery_rule(kernel, task, warehouse, plans, live)
        tasks[name] = task
    for name in warehouse.tables:
        kernel.add(tasks[name])


def _add_classes(kernel: Kernel, plan: Plan) -> None:
    place = len(plan.warehouse.tables) + len(plan.warehouse.queries)
    for number, name in enumerate(plan.warehouse.classes):
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
    order = order_kind(planned.policy).made_for(Setting(planned, plan, kernel.timers, tracks_from))
    order.batch_limit_us = NEVER if planned.batch_limit_us is None else planned.batch_limit_us
    # Where nothing is proven there is nothing to be broken: a table's own period alone counts.
    order.released_limit_us = None if POLICIES[planned.policy].proven else NEVER
    pool = Pool(planned.name, planned.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for name in (*planned.tables, *planned.classes):
        pool.join(kernel.task(name))
