"""Checks that (6) is sound: a kernel runs placed plans with bursts as close together as allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Final, Literal, NamedTuple

from freshline.planning.placement.place import place
from freshline.planning.placement.placement import Placement
from freshline.planning.placement.plan import Operator, PlacementPlan
from freshline_lab.campaigns.placement.placement_plans import large_plan, small_plan
from freshline_lab.runs.placement_run import Burst, StepSetting, run_steps, step_kernel

Way = Literal["preemptive", "blocking", "several"]
WAYS: Final[tuple[Way, ...]] = ("preemptive", "blocking", "several")
_UNIT: Final = 1_000_000
_BURSTS: Final = 6
# A solver's answer is within 1e-6 of the exact one, and sub-deadlines are whole microseconds.
_TOLERANCE: Final = 2e-6


class WorstOutput(NamedTuple):
    """The output that came closest to its deadline, or was the latest."""

    output: str
    burst: int
    latency_us: int
    deadline_us: int

    @property
    def share(self) -> float:
        return self.latency_us / self.deadline_us

    @property
    def late(self) -> bool:
        return self.share > 1 + _TOLERANCE


def random_placed(seed: int, way: Way) -> tuple[PlacementPlan, Placement] | None:
    """A plan with a placement that is in time; None if the plan has none."""
    random = Random(f"holds:{seed}")
    if random.random() < 0.5:
        plan = large_plan(seed, random.randint(4, 14), random.randint(1, 3), 2.5, random.choice((6, 20)))
    else:
        plan = _needed_only(small_plan(seed, random.randint(3, 9)))
    plan = replace(
        plan,
        nodes=tuple(
            replace(node, blocking=Fraction(0) if way == "preemptive" else _longest(plan, node.name))
            for node in plan.nodes
        ),
    )
    found = place(plan, 5.0)
    return (plan, found) if found.holds else None


def run_placed(plan: PlacementPlan, found: Placement, seed: int, way: Way) -> WorstOutput:
    """The worst output with random bursts, often as close as allowed, and random costs up to the limit."""
    assert found.layout is not None
    random = Random(f"run:{seed}")
    speed = {node.name: node.speed for node in plan.nodes}
    nodes = found.layout.nodes
    costs_us = {each.name: ceil(each.cost / speed[nodes[each.name]] * _UNIT) for each in plan.operators}
    until_us = {name: floor(until * _UNIT) for name, until in found.layout.sub_deadline.items()}
    limits_us: dict[str, int] = {}
    if way == "several":
        blocking = {node.name: float(node.blocking) for node in plan.nodes}
        limits_us = {
            node.name: floor((blocking[node.name] + (node.slack or 0.0)) * _UNIT) for node in found.nodes
        }
    setting = StepSetting(
        nodes,
        until_us,
        costs_us,
        [task.operators for task in found.tasks],
        limits_us,
        preemptive=way == "preemptive",
    )
    bursts = _bursts(plan, setting, random)
    least = random.choice((1.0, 1.0, 0.3))
    drawn = {
        (name, number): max(1, floor(cost_us * random.uniform(least, 1)))
        for name, cost_us in costs_us.items()
        for number in range(1, _BURSTS + 1)
    }
    done = run_steps(step_kernel(plan, setting), bursts, lambda name, number: drawn[name, number])
    return _worst(plan, bursts, {(each.operator, each.burst): each.finish for each in done})


def _bursts(plan: PlacementPlan, setting: StepSetting, random: Random) -> list[Burst]:
    bursts = []
    for stream, distance_us in distances_us(plan, setting).items():
        at = random.randrange(distance_us)
        for number in range(1, _BURSTS + 1):
            bursts.append(Burst(at, stream, number))
            at += distance_us + (0 if random.random() < 0.7 else random.randrange(distance_us))
    return bursts


def distances_us(plan: PlacementPlan, setting: StepSetting) -> dict[str, int]:
    """By source stream: the least distance of its bursts (docs/placement.md, "One instance at a time")."""
    load_us: dict[str, int] = {}
    for name, node in setting.nodes.items():
        load_us[node] = load_us.get(node, 0) + setting.costs_us[name]
    blocking_us = {node.name: ceil(node.blocking * _UNIT) for node in plan.nodes}
    makers = {stream: each.name for each in plan.operators for stream in each.outputs}
    by_name = {each.name: each for each in plan.operators}
    before_us: dict[str, int] = {}

    def before(name: str) -> int:
        if name not in before_us:
            made_by = [makers[stream] for stream in by_name[name].inputs if stream in makers]
            before_us[name] = max(
                (before(each) + setting.sub_deadlines_us[each] for each in made_by), default=0
            )
        return before_us[name]

    found: dict[str, int] = {}
    for name, node in setting.nodes.items():
        needed_us = blocking_us[node] + load_us[node] + before(name)
        for stream in _sources_of(by_name, makers, name):
            found[stream] = max(found.get(stream, 1), needed_us)
    return found


def _worst(plan: PlacementPlan, bursts: list[Burst], finished: Mapping[tuple[str, int], int]) -> WorstOutput:
    came_at = {(burst.stream, burst.number): burst.at for burst in bursts}
    makers = {stream: each.name for each in plan.operators for stream in each.outputs}
    by_name = {each.name: each for each in plan.operators}
    found = []
    for output in plan.outputs:
        maker = makers[output.stream]
        streams = _sources_of(by_name, makers, maker)
        for number in range(1, _BURSTS + 1):
            latest = max(came_at[stream, number] for stream in streams)
            latency_us = finished[maker, number] - latest
            found.append(WorstOutput(output.stream, number, latency_us, round(output.deadline * _UNIT)))
    return max(found, key=lambda each: each.share)


def _sources_of(by_name: Mapping[str, Operator], makers: Mapping[str, str], name: str) -> set[str]:
    found: set[str] = set()
    for stream in by_name[name].inputs:
        found |= _sources_of(by_name, makers, makers[stream]) if stream in makers else {stream}
    return found


def _longest(plan: PlacementPlan, node: str) -> Fraction:
    """The cost of the longest operator that may run there."""
    (speed,) = (each.speed for each in plan.nodes if each.name == node)
    allowed = [each.cost / speed for each in plan.operators if each.nodes is None or node in each.nodes]
    return max(allowed, default=Fraction(0))


def _needed_only(plan: PlacementPlan) -> PlacementPlan:
    """The plan without operators that no output needs: a warehouse has none."""
    makers = {stream: each for each in plan.operators for stream in each.outputs}
    needed: set[str] = set()
    ahead = [makers[output.stream] for output in plan.outputs]
    while ahead:
        operator = ahead.pop()
        if operator.name not in needed:
            needed.add(operator.name)
            ahead += [makers[stream] for stream in operator.inputs if stream in makers]
    return replace(plan, operators=tuple(each for each in plan.operators if each.name in needed))
