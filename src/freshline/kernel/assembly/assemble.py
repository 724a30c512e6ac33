"""Builds the kernel that runs a plan, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshline.definitions.language.policies import POLICIES
from freshline.kernel.assembly.context import Assembly
from freshline.kernel.assembly.kinds import KINDS
from freshline.kernel.assembly.order_kinds import order_kind
from freshline.kernel.assembly.query_tracks import add_queries, holds_queries_only
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.order import OrderContext
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.timers import NEVER
from freshline.planning.plan.plan import Plan, PoolPlan


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
    """The kernel of a planned warehouse: at instant 0 with empty tables, or with tables as found at `now`.

    `freshness` says how far each table is loaded; None for a table that is empty. `tracks_from` is the number
    of the first track. `live`: files take a moment to be found; the default is true if `freshness` is given.
    `batches`: a job may take several files of a backlog. Without `begin` the caller must call `Kernel.begin`
    later. `node`: only the work of that node; `RemoteAdvanced` tells it of what other nodes update.
    """
    kernel = Kernel()
    takes_time = freshness is not None if live is None else live
    assembly = Assembly(kernel, plan, freshness, tracks_from, takes_time, node)
    for kind in KINDS:
        if kind.add_tasks is not None:
            kind.add_tasks(assembly)
    for pool in assembly.pools:
        if pool.queries or holds_queries_only(plan.warehouse.pools[pool.name]):
            add_queries(assembly, pool)
        else:
            _add_pool(assembly, pool)
    for kind in KINDS:
        if kind.add_pools is not None:
            kind.add_pools(assembly)
    if not batches:
        for assembled in kernel.pools:
            assembled.order.batch_limit_us = assembled.order.released_limit_us = 0
    if begin:
        kernel.begin(now)
    return kernel


def _add_pool(assembly: Assembly, planned: PoolPlan) -> None:
    kernel = assembly.kernel
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
            _add_pool(assembly, own)
        return
    tracks_from = assembly.next_track
    context = OrderContext(planned, assembly.plan, kernel.timers, tracks_from)
    order = order_kind(planned.policy).made_for(context)
    order.batch_limit_us = NEVER if planned.batch_limit_us is None else planned.batch_limit_us
    # Without a proven bound a batch cannot break one: only the table's own period limits it.
    order.released_limit_us = None if POLICIES[planned.policy].proven else NEVER
    pool = TrackPool(planned.name, planned.tracks, tracks_from, order, kernel.touched)
    kernel.pools.append(pool)
    for name in (*planned.tables, *planned.classes):
        pool.join(kernel.task(name))
