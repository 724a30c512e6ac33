"""The part of a warehouse that a run is for: all of it, or what is on one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A run writes the tables of `local`, and follows others: those that are read here and written elsewhere.

    `local` has the pools, feeds, tables, steps, queries and classes that are here; their sources may not be.
    """

    whole: Warehouse
    node: str | None
    local: Warehouse
    followed: Mapping[str, str]  # by table: the node that writes it


def all_of(warehouse: Warehouse) -> NodeShare:
    """The part of a run that is alone."""
    return NodeShare(warehouse, None, warehouse, {})


def part_of(warehouse: Warehouse, node: str, placement: Mapping[str, str]) -> NodeShare:
    """What is on a node; `placement` says of each step where it is."""
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
        read |= set(warehouse.stored)  # whoever asks may ask any
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
