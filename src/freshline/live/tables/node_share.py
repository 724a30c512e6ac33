"""The part of a warehouse that a run has: all of it, or the part of one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse


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
    tables = {name: table for name, table in warehouse.tables.items() if table.pool in pools}
    steps = {name: step for name, step in warehouse.steps.items() if placement[name] == node}
    queries = {name: query for name, query in warehouse.queries.items() if query.pool in pools}
    classes = {name: each for name, each in warehouse.classes.items() if each.pool in pools}
    own: dict[str, StoredDefinition] = {**steps, **tables}
    feeds = {table.feed for table in own.values() if table.feed is not None}
    read = {source for table in own.values() for source in table.sources}
    read |= {table for query in queries.values() for table in query.tables}
    of_tables = {table.pool for table in tables.values()}
    for_queries = [name for name in pools.keys() - of_tables if pools[name].may_hold("queries")]
    asked = bool(for_queries) and node == next(iter(warehouse.nodes))
    if classes or asked:
        read |= set(warehouse.stored)  # a request may read any table
    local = replace(
        warehouse,
        pools=pools,
        feeds={name: feed for name, feed in warehouse.feeds.items() if name in feeds},
        tables=tables,
        topological_order=tuple(name for name in warehouse.topological_order if name in tables),
        steps=steps,
        step_order=tuple(name for name in warehouse.step_order if name in steps),
        queries=queries,
        classes=classes,
    )
    nodes = {name: warehouse.pools[table.pool].node for name, table in warehouse.tables.items()}
    followed = {
        name: placement.get(name) or nodes[name] or ""
        for name in warehouse.stored
        if name in read - own.keys()
    }
    return NodeShare(warehouse, node, local, followed)
