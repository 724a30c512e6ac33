"""Compares the verdicts on outputs with what they must be by their definitions alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from freshline.base.duration import HOUR
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.outputs import plan_outputs
from freshline.planning.plan.plan import Plan

# A solver's answer is within 1e-6 of the exact one.
_TOLERANCE = 1e-5


def wrong_proofs(plan: Plan) -> Iterator[str]:
    """Sub-deadlines beyond what is left of a deadline, and outputs that only another one spoils."""
    warehouse = plan.warehouse
    for output in plan.outputs:
        longest_us = _longest_path_us(warehouse, output.name, dict(output.sub_deadlines_us))
        if output.holds and longest_us > output.deadline_us * (1 + _TOLERANCE):
            yield f"proof: sub-deadlines of {output.name} take {longest_us} of {output.deadline_us}"
    if any(node.policy == "fifo" for node in warehouse.nodes.values()):
        return  # nothing is proven there, and where steps are placed depends on all deadlines
    unproven = [output.name for output in plan.outputs if not output.holds]
    hopeless = [name for name in unproven if not _holds_alone(warehouse, name)]
    if not hopeless or len(hopeless) == len(plan.outputs):
        return
    relaxed = _with_deadline(warehouse, hopeless, HOUR)
    for output in plan_outputs(relaxed).outputs:
        if output.holds and output.name in set(unproven).difference(hopeless):
            yield f"proof: {output.name} is not proven, only because {', '.join(hopeless)} cannot be"


def _longest_path_us(warehouse: Warehouse, step: str, sub_deadlines_us: dict[str, int]) -> int:
    sources = warehouse.steps[step].sources
    before_us = max((_longest_path_us(warehouse, each, sub_deadlines_us) for each in sources), default=0)
    return before_us + sub_deadlines_us.get(step, 0)


def _holds_alone(warehouse: Warehouse, output: str) -> bool:
    """Whether the output would be in time if no other had a deadline to keep.

    The very long sub-deadlines of others may spoil the proof that bursts do not meet. Then it counts as
    hopeless, and is not compared.
    """
    others = [
        name for name, step in warehouse.steps.items() if step.deadline_us is not None and name != output
    ]
    found = plan_outputs(_with_deadline(warehouse, others, HOUR)).outputs
    return next(each.holds for each in found if each.name == output)


def _with_deadline(warehouse: Warehouse, outputs: list[str], deadline_us: int) -> Warehouse:
    changed = {name: replace(warehouse.steps[name], deadline_us=deadline_us) for name in outputs}
    return replace(warehouse, steps={**warehouse.steps, **changed})
