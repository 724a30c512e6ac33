"""How a node joins the others: with the same definitions, and the same placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from freshline.costs.learned import learned_costs
from freshline.definitions.cost import Cost
from freshline.definitions.duration import SECOND
from freshline.definitions.errors import InputError
from freshline.definitions.warehouse import Warehouse
from freshline.live.agreement import agree, digest_of
from freshline.plan.outputs import plan_outputs
from freshline.plan.placed import Placed
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity
from freshline.storage.told_runs import ToldRuns

# What is assumed of a step before it has ever run.
_PROVISIONAL: Final = Cost(SECOND, Fraction(0))


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
        told = ToldRuns(control.runs for control in layout.controls(warehouse.nodes))
        made = make_placement(learned_costs(warehouse, told).warehouse, known)
        if layout.placements.add(made.record(), number):
            return made


def _placed(record: Mapping[str, Any] | None) -> Placed | None:
    try:
        return None if record is None else Placed.from_record(record)
    except (KeyError, TypeError, ValueError):
        return None


def make_placement(warehouse: Warehouse, known: Placed | None) -> Placed:
    """A placement of all steps, those that are known where they are. InputError where there is none.

    Steps of unknown cost count as if they took a second, until it is learned. Where not all outputs can be in
    time it is the one with its deadlines stretched.
    """
    steps = {name: replace(step, cost=step.cost or _PROVISIONAL) for name, step in warehouse.steps.items()}
    kept = {} if known is None else {name: node for name, node in known.nodes.items() if name in steps}
    found = plan_outputs(replace(warehouse, steps=steps), kept=kept or None)
    if found.placed is None:
        reasons = {output.reason for output in found.outputs if output.reason is not None}
        what = f"the steps cannot be placed: {'; '.join(sorted(reasons))}"
        raise InputError(what, "`freshline place` shows what binds")
    return found.placed
