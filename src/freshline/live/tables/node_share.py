"""The part of a warehouse that a run has: all of it, or the part of one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from freshline.definitions.warehouse import Warehouse

# The sections whose entries run in a pool.
_IN_POOLS: Final = ("tables", "queries", "classes")


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A run writes the tables of `local` and follows the tables of other nodes that it reads.

    `local` has this node's pools, feeds, tables, steps, queries and classes; their sources may be elsewhere.
    """

    whole: Warehouse
    node: str | None
    local: Warehouse
    followed: Mapping[str, str]  # by table: the node that writes it


def all_of(warehouse: Warehouse) -> NodeShare:
    """The whole warehouse, for a run without nodes."""
    return NodeShare(warehouse, None, warehouse, {})


def part_of(warehouse: Warehouse, node: str, placement: Mapping[str, str]) -> NodeShare:
    """The part of a node; `placement` has the node of each step."""
    pools = {name: pool for name, pool in warehouse.pools.items() if pool.node == node}
    steps = {name: step for name, step in warehouse.steps.items() if placement[name] == node}
    of_pools: dict[str, Any] = {
        section: {name: each for name, each in getattr(warehouse, section).items() if each.pool in pools}
        for section in _IN_POOLS
    }
    part = replace(warehouse, pools=pools, steps=steps, **of_pools)
    own = part.stored
    feeds = {table.feed for table in own.values()}
    local = replace(
        part,
        feeds={name: feed for name, feed in warehouse.feeds.items() if name in feeds},
        topological_order=tuple(name for name in warehouse.topological_order if name in own),
        step_order=tuple(name for name in warehouse.step_order if name in own),
    )
    read = _read(local, node, warehouse) - own.keys()
    nodes = {name: warehouse.pools[table.pool].node for name, table in warehouse.tables.items()}
    followed = {name: placement.get(name) or nodes[name] or "" for name in warehouse.stored if name in read}
    return NodeShare(warehouse, node, local, followed)


def _read(local: Warehouse, node: str, whole: Warehouse) -> set[str]:
    """The tables that a node's part reads; a request, which the first node answers, may read any."""
    of_tables = {table.pool for table in local.tables.values()}
    answers = any(pool.may_hold("queries") for name, pool in local.pools.items() if name not in of_tables)
    if local.classes or (answers and node == next(iter(whole.nodes))):
        return set(whole.stored)
    of_queries = {table for query in local.queries.values() for table in query.tables}
    return {source for table in local.stored.values() for source in table.sources} | of_queries
