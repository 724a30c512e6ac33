"""How a node joins the others: with the same definitions, and the same placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freshline.definitions.warehouse import Warehouse
from freshline.live.agreement import agree, digest_of
from freshline.plan.placed import Placed
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity


def join_nodes(warehouse: Warehouse, node: str, layout: Layout, identity: Identity) -> Placed:
    """The placement that this node runs by, and all others. Called with the node's lease held."""
    control = layout.control(node)
    control.drained.unlink(missing_ok=True)
    others = [layout.control(other) for other in warehouse.nodes if other != node]
    agree(control, others, digest_of(warehouse), identity)
    return agreed_placement(warehouse, layout)


def agreed_placement(warehouse: Warehouse, layout: Layout) -> Placed:
    """The placement in the storage; made, beside what stays, where it lacks a step or has one too many."""
    while True:
        number, record = layout.placements.newest()
        known = _placed(record)
        if known is not None and known.nodes.keys() == warehouse.steps.keys():
            return known
        made = make_placement(warehouse, known)
        if layout.placements.add(made.record(), number):
            return made


def _placed(record: Mapping[str, Any] | None) -> Placed | None:
    try:
        return None if record is None else Placed.from_record(record)
    except (KeyError, TypeError, ValueError):
        return None


def make_placement(warehouse: Warehouse, known: Placed | None) -> Placed:
    nodes: dict[str, str] = {}
    for name in warehouse.step_order:
        step = warehouse.steps[name]
        nodes[name] = step.node or next(nodes[source] for source in step.sources)
    return Placed(
        nodes,
        dict.fromkeys(nodes, 2_000_000),
        dict.fromkeys(nodes, 500_000),
        tuple((name,) for name in nodes),
        dict.fromkeys(warehouse.nodes, 2_000_000),
    )
