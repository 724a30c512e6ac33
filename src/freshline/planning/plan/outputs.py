"""Which outputs are in time, the nodes of their steps, and the sub-deadlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

from freshline.base.duration import SECOND, format_duration
from freshline.base.names import one_of
from freshline.definitions.warehouse import Warehouse
from freshline.planning.placement.importance import place_important
from freshline.planning.placement.place import Method, place
from freshline.planning.placement.placement import Placement, PlacementLayout
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.stored_layout import check_layout
from freshline.planning.placement.tasks import tasks_of
from freshline.planning.placement.tightening import tightened
from freshline.planning.plan.placed_steps import (
    PlacedSteps,
    on_node_us,
    placement_plan,
    unknown_costs,
    why_unknown,
)
from freshline.planning.plan.plan import OutputPlan, Plan
from freshline.planning.plan.step_placement import StepPlacement


@dataclass(frozen=True, slots=True)
class OutputsPlan:
    """The plan of a warehouse's outputs."""

    outputs: tuple[OutputPlan, ...]
    placed: StepPlacement | None = None  # None if nothing could be placed
    placement: Placement | None = None  # with all deadlines as they are; None if costs are unknown
    unknown: tuple[str, ...] = ()  # the steps of unknown cost


def plan_outputs(
    warehouse: Warehouse,
    limit_s: float = 60.0,
    method: Method = "deadline",
    kept: Mapping[str, str] | None = None,
) -> OutputsPlan:
    """Places the steps, except those in `kept`, and computes which outputs hold."""
    unknown = unknown_costs(warehouse)
    if unknown:
        reason = why_unknown(warehouse, unknown)
        outputs = [_unplaced(warehouse, name, reason) for name in _names(warehouse)]
        return OutputsPlan(tuple(outputs), unknown=unknown)
    steps = PlacedSteps(warehouse)
    plan = placement_plan(steps)
    placement = place(plan, limit_s, method, kept)
    hopeless = any(steps.left_us(name) <= 0 for name in steps.outputs)
    search = _Search(steps, plan, limit_s / 4, kept)
    found = None
    if method == "deadline" and (hopeless or not placement.holds):
        found = search.important(search.ranked)
    layout = placement.layout
    if found is None and layout is None:
        reason = "no placement was found" if placement.infeasible is None else placement.infeasible.reason
        outputs = [_unplaced(warehouse, name, reason) for name in _names(warehouse)]
        return OutputsPlan(tuple(outputs), None, placement)
    if found is None:
        found = search.tightest(plan, placement, {})
    if method == "deadline" and placement.status != "unknown":
        found = search.without_spoilers(found)
    return replace(found, placement=placement)


class _Search:
    """Finds the placement with which the most important outputs are in time.

    An output also has to be computed before its next burst comes, and so have all that share its nodes. Long
    sub-deadlines can break this where shorter ones do not.
    """

    def __init__(
        self, steps: PlacedSteps, plan: PlacementPlan, limit_s: float, kept: Mapping[str, str] | None
    ) -> None:
        self._steps = steps
        self._plan = plan
        self._limit_s = limit_s
        self._kept = kept
        weights = {name: steps.warehouse.steps[name].weight for name in steps.outputs}
        in_question = filter(lambda name: steps.left_us(name) > 0, weights)
        self.ranked = sorted(in_question, key=lambda name: -weights[name])  # the most important first

    def important(self, ranked: Sequence[str]) -> OutputsPlan | None:
        """The plan with the deadlines of the most important outputs, and stretched ones of the others."""
        found = place_important(self._plan, ranked, self._limit_s, self._kept)
        if found is None or found.placement.layout is None:
            return None
        return self.tightest(found.plan, found.placement, found.stretched)

    def tightest(
        self, plan: PlacementPlan, placement: Placement, stretched: Mapping[str, float]
    ) -> OutputsPlan:
        """The plan of a placement, with shorter sub-deadlines if more outputs hold with them."""
        best = _planned(self._steps, plan, placement, stretched)
        for keep_slack in (True, False):
            if self._all_hold(best) or not placement.holds:
                break
            tight = tightened(plan, placement, keep_slack)
            best = self._better(best, _planned(self._steps, plan, tight, stretched))
        return best

    def without_spoilers(self, found: OutputsPlan) -> OutputsPlan:
        """The same or a better plan, if outputs are unproven though their deadlines are kept.

        Then another one spoils them: each output keeps its deadline only if it and those before it all hold.
        """
        if not self._spoiled(found):
            return found
        kept: list[str] = []
        best = found
        for name in self.ranked:
            tried = self.important([*kept, name])
            if tried is not None and self._holding(tried).issuperset([*kept, name]):
                kept.append(name)
                best = self._better(best, tried)
        return best

    def _spoiled(self, found: OutputsPlan) -> set[str]:
        """The outputs that are unproven though their deadlines are kept. With `fifo` nothing is proven."""
        if any(node.policy != "edf" for node in self._steps.warehouse.nodes.values()):
            return set()
        stretched = set() if found.placed is None else found.placed.stretched.keys()
        return set(self.ranked) - self._holding(found) - stretched

    def _holding(self, found: OutputsPlan) -> set[str]:
        return {output.name for output in found.outputs if output.holds}

    def _all_hold(self, found: OutputsPlan) -> bool:
        return self._holding(found).issuperset(self.ranked)

    def _better(self, one: OutputsPlan, other: OutputsPlan) -> OutputsPlan:
        """The plan that holds for the most important output for which only one of them does."""
        ones, others = self._holding(one), self._holding(other)
        of_one, of_other = ([name in holding for name in self.ranked] for holding in (ones, others))
        return other if of_other > of_one else one


def _planned(
    steps: PlacedSteps, plan: PlacementPlan, placement: Placement, stretched: Mapping[str, float]
) -> OutputsPlan:
    layout = placement.layout
    assert layout is not None
    placed = _placed(steps, plan, placement, layout, stretched)
    found = _outputs(steps, placed, placement)
    return OutputsPlan(found, _with_reasons(placed, found), placement)


def judge_outputs(warehouse: Warehouse, stored: StepPlacement) -> OutputsPlan:
    """Which outputs hold with a placement as it is, its sub-deadlines and jobs, at the costs known now."""
    unknown = unknown_costs(warehouse)
    if unknown:
        return plan_outputs(warehouse)
    steps = PlacedSteps(warehouse)
    nodes = warehouse.nodes
    costs_us = {
        name: on_node_us(cost_us, nodes[stored.nodes[name]].speed) for name, cost_us in steps.costs_us.items()
    }
    jobs_us = _longest_jobs_us(stored, costs_us)
    plan = placement_plan(steps)
    blocking_us = {node: jobs_us.get(node, 0) + steps.hop_us(node) for node in nodes}
    blocked = tuple(
        replace(node, blocking=max(node.blocking, Fraction(blocking_us[node.name], SECOND)))
        for node in plan.nodes
    )
    sub_deadlines = {name: until_us / SECOND for name, until_us in stored.sub_deadlines_us.items()}
    placement = check_layout(replace(plan, nodes=blocked), stored.nodes, sub_deadlines)
    placed = replace(stored, costs_us=costs_us)
    found = _outputs(steps, placed, placement)
    return OutputsPlan(found, _with_reasons(placed, found), placement)


def _longest_jobs_us(stored: StepPlacement, costs_us: Mapping[str, int]) -> dict[str, int]:
    """By node: the longest job of several steps at these costs.

    The limits and the costs of the placement decide which steps share a job.
    """
    found: dict[str, int] = {}
    for task in stored.tasks:
        node = stored.nodes[task[0]]
        limit_us = stored.limits_us.get(node, 0)
        for first in range(len(task)):
            for end in range(first + 2, len(task) + 1):
                job = task[first:end]
                if sum(stored.costs_us[step] for step in job) <= limit_us:
                    found[node] = max(found.get(node, 0), sum(costs_us[step] for step in job))
    return found


def placed_by(warehouse: Warehouse, placement: Placement) -> StepPlacement | None:
    """A placement by deadlines as a run keeps it, for a warehouse with known costs.

    If not all outputs can be in time, some have stretched deadlines; None if there is none.
    """
    if not placement.holds or placement.layout is None:
        return plan_outputs(warehouse).placed
    steps = PlacedSteps(warehouse)
    return _planned(steps, placement_plan(steps), placement, {}).placed


def _with_reasons(placed: StepPlacement, outputs: tuple[OutputPlan, ...]) -> StepPlacement:
    unproven = {output.name: output.reason for output in outputs if output.reason is not None}
    return replace(placed, unproven=unproven)


def with_outputs(plan: Plan, found: OutputsPlan) -> Plan:
    """The plan with the result for its outputs."""
    return replace(plan, placed=found.placed, outputs=found.outputs)


def _outputs(steps: PlacedSteps, placed: StepPlacement, placement: Placement) -> tuple[OutputPlan, ...]:
    """The outputs under a placement."""
    warehouse = steps.warehouse
    slack_us = {node.name: _us(node.slack) for node in placement.nodes if node.slack is not None}
    found = []
    for name in _names(warehouse):
        step = warehouse.steps[name]
        above = [each for each in warehouse.step_order if each in steps.upstream[name]]
        nodes = {placed.nodes[each] for each in above}
        reason = _reason(steps, name, above, placed, placement)
        slacks = [slack_us[node] for node in nodes if node in slack_us]
        assert step.deadline_us is not None
        found.append(
            OutputPlan(
                name,
                step.deadline_us,
                reason is None,
                placed.nodes[name],
                {each: placed.sub_deadlines_us[each] for each in above},
                min(slacks, default=None) if reason is None else None,
                reason,
                steps.ages_us(name),
            )
        )
    return tuple(found)


def _placed(
    steps: PlacedSteps,
    plan: PlacementPlan,
    placement: Placement,
    layout: PlacementLayout,
    stretched: Mapping[str, float],
) -> StepPlacement:
    nodes = steps.warehouse.nodes
    costs_us = {
        name: on_node_us(cost_us, nodes[layout.nodes[name]].speed) for name, cost_us in steps.costs_us.items()
    }
    slack_us = {node.name: _us(node.slack or 0.0) for node in placement.nodes}
    return StepPlacement(
        {name: layout.nodes[name] for name in steps.warehouse.steps},
        {name: _us(layout.sub_deadline[name]) for name in steps.warehouse.steps},
        costs_us,
        tuple(task.operators for task in placement.tasks or tasks_of(plan, layout)),
        {name: steps.longest_us(name) + slack_us.get(name, 0) for name in nodes},
        # An output without any time left is late for another reason, and so is one that would be in time.
        {name: factor for name, factor in stretched.items() if steps.left_us(name) > 0 and factor > 1},
    )


def _reason(
    steps: PlacedSteps, output: str, above: list[str], placed: StepPlacement, placement: Placement
) -> str | None:
    """Why an output is not proven to be in time; None if it is."""
    warehouse = steps.warehouse
    left_us = steps.left_us(output)
    if left_us <= 0:
        waited_us = (warehouse.steps[output].deadline_us or 0) - left_us
        return f"its records may be {format_duration(waited_us)} old before anything is computed from them"
    if not placement.holds:
        infeasible = placement.infeasible
        return "it is not known whether all steps fit" if infeasible is None else infeasible.reason
    if output in placed.stretched:
        return (
            f"no placement is in time for it{_and_others(steps, placed)}: "
            f"its deadline is stretched {placed.stretched[output]:.4g} times"
        )
    beside = _beside(steps, above, placed)
    nodes = dict.fromkeys(placed.nodes[name] for name in beside)
    unproven = [node for node in nodes if warehouse.nodes[node].policy != "edf"]
    if unproven:
        return f"no bound is proven for `policy: fifo` on {one_of(unproven)}"
    before_us = steps.before_us(placed.sub_deadlines_us)
    for name in beside:
        node = placed.nodes[name]
        there = [each for each, where in placed.nodes.items() if where == node]
        load_us = sum(steps.instances[each] * placed.costs_us[each] for each in there)
        busy_us = steps.blocking_us(node) + load_us
        if busy_us > steps.distance_us(name) - before_us[name]:
            return (
                f"node {node} may still be busy with a burst for {name} when the next comes: it takes up to "
                f"{format_duration(busy_us + before_us[name], up=True)} "
                f"and they come {format_duration(steps.distance_us(name))} apart"
            )
    return None


def _and_others(steps: PlacedSteps, placed: StepPlacement) -> str:
    kept = [name for name in steps.outputs if name not in placed.stretched and steps.left_us(name) > 0]
    return f" and for {', '.join(kept)}" if kept else ""


def _beside(steps: PlacedSteps, above: list[str], placed: StepPlacement) -> list[str]:
    """These steps, all that share a node with one, all that those are computed from, and so on.

    A step that runs again too soon delays everything on its node (docs/placement.md).
    """
    found = set(above)
    while True:
        nodes = {placed.nodes[name] for name in found}
        there = [name for name, node in placed.nodes.items() if node in nodes]
        more = found.union(*(steps.upstream[name] for name in there))
        if more == found:
            return [name for name in steps.warehouse.step_order if name in found]
        found = more


def _unplaced(warehouse: Warehouse, name: str, reason: str) -> OutputPlan:
    deadline_us = warehouse.steps[name].deadline_us
    assert deadline_us is not None
    return OutputPlan(name, deadline_us, False, None, {}, None, reason)


def _names(warehouse: Warehouse) -> list[str]:
    return [name for name, step in warehouse.steps.items() if step.deadline_us is not None]


def _us(seconds: float) -> int:
    """Whole microseconds, rounded down after a small correction of float errors."""
    return floor(seconds * SECOND + 1e-3)
