"""Pools of queries in a kernel: each track is a pool of its own."""

from __future__ import annotations

from collections.abc import Sequence

from freshline.assembly.order_kinds import order_kind
from freshline.definitions.pools import Pool as PoolDefinition
from freshline.kernel.kernel import Kernel
from freshline.kernel.pool import Pool
from freshline.kernel.preemption import PreemptivePool
from freshline.queries.newcomer import Asked, join


def track_name(pool: str, number: int) -> str:
    """The kernel's pool that is one track of a pool of queries; tracks count from 1."""
    return f"{pool}/{number}"


def add_query_tracks(
    kernel: Kernel, pool: PoolDefinition, queries: Sequence[Asked], tracks_from: int
) -> None:
    """Its tracks, and the queries, each of which says on which track it is."""
    for number in range(pool.tracks):
        order = order_kind(pool.policy)()
        order.preemptive = pool.preempts
        kind = PreemptivePool if pool.preempts else Pool
        name = track_name(pool.name, number + 1)
        kernel.pools.append(kind(name, 1, tracks_from + number, order, kernel.touched))
    for asked in queries:
        join(kernel, asked)
