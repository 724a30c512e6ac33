"""Joins a node to the others: with the same definitions and the same placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.nodes import reachable
from freshline.definitions.warehouse import Warehouse
from freshline.live.nodes.same_definitions import agree, digest_of
from freshline.planning.costs.learned import learned_costs
from freshline.planning.plan.counted_costs import count_cores
from freshline.planning.plan.outputs import plan_outputs
from freshline.planning.plan.placed_steps import unknown_costs
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity
from freshline.storage.control.node_runs import NodeRuns

# The assumed cost of a step whose cost is not known.
_PROVISIONAL: Final = Cost(SECOND, Fraction(0), loaded=True)


def join_nodes(warehouse: Warehouse, node: str, layout: StorageLayout, identity: Identity) -> StepPlacement:
    """The placement that all nodes use. The caller holds the node's lease."""
    control = layout.control(node)
    control.drained.unlink(missing_ok=True)
    others = [layout.control(other) for other in warehouse.nodes if other != node]
    agree(control, others, digest_of(warehouse), identity)
    return agreed_placement(warehouse, layout)


def agreed_placement(warehouse: Warehouse, layout: StorageLayout) -> StepPlacement:
    """The placement in the storage, or a new one if that does not fit the definitions.

    Steps stay on their nodes if they can. A new or removed step, a removed node or a step with another node
    needs a new placement. After other changes, of a deadline or a cost, only sub-deadlines change.
    """
    digest = digest_of(warehouse)
    while True:
        stored = stored_placement(warehouse, layout)
        if stored.in_use is not None:
            return stored.in_use
        told = NodeRuns(control.runs for control in layout.controls(warehouse.nodes))
        made = make_placement(learned_costs(warehouse, told).warehouse, stored.staying)
        made = replace(made, definitions=digest)
        if layout.placements.add(made.record(), stored.number):
            return made


@dataclass(frozen=True, slots=True)
class PlacementInStorage:
    """The newest placement of a storage, and what the next run keeps of it."""

    number: int = 0  # 0: there is none
    staying: Mapping[str, str] = field(default_factory=dict)  # by step that stays: its node
    in_use: StepPlacement | None = None  # the whole placement, if the next run keeps it


def stored_placement(warehouse: Warehouse, layout: StorageLayout) -> PlacementInStorage:
    """The placement in the storage; `warehouse` has the definitions without learned costs."""
    number, record = layout.placements.newest()
    known = _placed(record)
    staying = {} if known is None else _staying(warehouse, known)
    stays = known is not None and known.nodes == staying and staying.keys() == warehouse.steps.keys()
    same = known is not None and known.definitions == digest_of(warehouse)
    return PlacementInStorage(number, staying, known if stays and same else None)


def _placed(record: Mapping[str, Any] | None) -> StepPlacement | None:
    try:
        return None if record is None else StepPlacement.from_record(record)
    except (KeyError, TypeError, ValueError):
        return None


def _staying(warehouse: Warehouse, known: StepPlacement) -> dict[str, str]:
    """By step, its present node, if the step may be there and the nodes of its sources have links to it."""
    ways = {node: reachable(warehouse.links, warehouse.nodes, node) for node in warehouse.nodes}
    found: dict[str, str] = {}
    for name in warehouse.step_order:
        step, node = warehouse.steps[name], known.nodes.get(name)
        if node is None or node not in warehouse.nodes_of(name):
            continue
        if all(node in ways[found.get(source, node)] for source in step.sources):
            found[name] = node
    return found


def make_placement(warehouse: Warehouse, kept: Mapping[str, str] | None = None) -> StepPlacement:
    """A placement of all steps, with those in `kept` where they are. InputError if there is none.

    Steps of unknown cost, or of unknown rows if these count, are assumed to take a second. If not all outputs
    can be in time, the deadlines are stretched.
    """
    unknown = unknown_costs(warehouse)
    steps = {**warehouse.steps}
    steps |= {name: replace(steps[name], cost=_PROVISIONAL) for name in unknown}
    counted = count_cores(replace(warehouse, steps=steps))
    found = plan_outputs(counted, kept=kept or None)
    if found.placed is None and kept:  # links have changed, and some step is cut off from its sources
        found = plan_outputs(counted)
    if found.placed is None:
        reasons = {output.reason for output in found.outputs if output.reason is not None}
        what = f"the steps cannot be placed: {'; '.join(sorted(reasons))}"
        raise InputError(what, "`freshline place` shows what binds")
    unproven = {**found.placed.unproven}
    if unknown:
        doubt = f"the cost of {', '.join(unknown)} is not known"
        unproven = {output.name: output.reason or doubt for output in found.outputs}
    return replace(found.placed, unproven=unproven, assumed=unknown)
