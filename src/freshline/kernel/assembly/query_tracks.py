"""Pools of queries in a kernel: each track is a kernel pool of its own."""

from __future__ import annotations

from collections.abc import Sequence

from freshline.definitions.language.policies import POLICIES
from freshline.definitions.sections.pools import Pool as PoolDefinition
from freshline.definitions.sections.queries import Query
from freshline.kernel.assembly.context import Assembly
from freshline.kernel.assembly.order_kinds import order_kind
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.preemption import PreemptivePool
from freshline.kernel.queries.query_spec import QueryMeasure, QuerySpec, join
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.plan.plan import PoolPlan


def track_name(pool: str, number: int) -> str:
    """The name of the kernel pool for one track of a pool of queries; tracks count from 1."""
    return f"{pool}/{number}"


def holds_queries_only(pool: PoolDefinition) -> bool:
    """Whether this is a pool of queries, even if it has none now: queries may join and leave."""
    return pool.preempts or "tables" not in POLICIES[pool.policy].holds


def asked_of(query: Query, load: QueryLoad, track: int) -> QuerySpec:
    """An admitted query as a kernel needs it; tracks of its pool count from 0."""
    return QuerySpec(
        query.name,
        track_name(query.pool, track + 1),
        query.window_us,
        query.stride_us,
        query.deadline_us,
        load.part_us,
        QueryMeasure(load.tuples, load.cost_us, load.fixed_us, load.selectivity),
        query.weight,
        query.keep_least,
        query.tables,
    )


def add_queries(assembly: Assembly, planned: PoolPlan) -> None:
    """Adds the admitted queries of a pool. Each table of another node becomes a remote table.

    A query that joins later may read any of them.
    """
    kernel, plan = assembly.kernel, assembly.plan
    here = {task.name for task in kernel.tasks}
    for table in plan.warehouse.stored:
        if table not in here:
            assembly.elsewhere(table)
    queries = [
        asked_of(plan.warehouse.queries[query.name], query.load, query.track)
        for query in plan.queries
        if query.pool == planned.name and query.track is not None
    ]
    add_query_tracks(kernel, plan.warehouse.pools[planned.name], queries, assembly.next_track)


def add_query_tracks(
    kernel: Kernel, pool: PoolDefinition, queries: Sequence[QuerySpec], tracks_from: int
) -> None:
    """Adds a kernel pool for each track, and the queries to their tracks."""
    for number in range(pool.tracks):
        order = order_kind(pool.policy)()
        order.preemptive = pool.preempts
        kind = PreemptivePool if pool.preempts else TrackPool
        name = track_name(pool.name, number + 1)
        kernel.pools.append(kind(name, 1, tracks_from + number, order, kernel.touched))
    for asked in queries:
        join(kernel, asked)
