"""Small random projects with outputs, to compare what `plan` proves with what `simulate` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from random import Random
from typing import NamedTuple

from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.placed_steps import PlacedSteps
from freshline.planning.plan.plan import Plan
from freshline.simulation.simulate import simulate
from freshline.simulation.steps import OutputResult


class OutputTrial(NamedTuple):
    """A project whose outputs were planned and simulated."""

    plan: Plan
    outputs: tuple[OutputResult, ...]

    @property
    def proven(self) -> int:
        return sum(output.holds for output in self.plan.outputs)

    @property
    def broken(self) -> list[str]:
        return [output.name for output in self.outputs if output.broke_proof]


def try_outputs(seed: int, periods: int = 30) -> OutputTrial:
    """Plans a random project and simulates it without faults."""
    warehouse = output_project(seed)
    plan = with_outputs(make_plan(warehouse), plan_outputs(warehouse, 5.0))
    longest_us = max(feed.period_us or 0 for feed in warehouse.feeds.values())
    return OutputTrial(plan, simulate(plan, periods * longest_us, seed).outputs)


def output_project(seed: int) -> Warehouse:
    """A project with outputs; their deadlines leave between little and much time for their steps."""
    random = Random(f"output project:{seed}")
    make = random.choice((_any_project, _any_project, _joined_feeds, _fast_and_slow))
    return _with_deadlines(loads(make(random)), random)


def _joined_feeds(random: Random) -> str:
    """Feeds whose files come shortly after one another, each of which releases their join."""
    period = random.randint(20, 60)
    feeds = [f"f{number}" for number in range(random.randint(2, 5))]
    phases = [f"{random.randint(0, 2500)}ms" for _ in feeds]
    small, large = f"{random.randint(10, 90)}ms", f"{random.randint(1000, 4000)}ms"
    lines = ["name: joined", "nodes: {here: {}}", "feeds:"]
    lines += [
        f"  {name}: {{period: {period}s, phase: {at}, burst: 1}}"
        for name, at in zip(feeds, phases, strict=True)
    ]
    lines += [f"  beside: {{period: {period}s, phase: {period * 1000 - 100}ms, burst: 1}}", "tables:"]
    lines += [f"  t{name}: {{feed: {name}, cost: {{startup: {small}}}}}" for name in feeds]
    joined = ", ".join(f"t{name}" for name in feeds)
    lines.append(f"  joined: {{sources: [{joined}], cost: {{startup: {large}}}, deadline: 1h}}")
    lines.append(f"  long: {{feed: beside, cost: {{startup: {large}}}, deadline: 1h}}")
    return "\n".join(lines)


def _fast_and_slow(random: Random) -> str:
    """A join of a fast feed with a slow one, which has rows of many files of the fast one."""
    keys = f"lateness: {random.randint(0, 2000)}ms, age: {random.randint(0, 3000)}ms"
    return f"""
name: unequal
nodes: {{here: {{}}}}
feeds:
  fast: {{period: {random.randint(2, 5)}s, burst: {random.randint(1, 30)}, {keys}}}
  slow: {{period: {random.randint(30, 60)}s, phase: {random.randint(0, 30)}s, burst: 1}}
tables:
  some: {{feed: fast, cost: {{startup: 10ms}}}}
  others: {{feed: slow, cost: {{startup: 10ms}}}}
  joined:
    sources: [some, others]
    cost: {{startup: 50ms, per_row: {random.randint(100, 3000)}us}}
    deadline: 1h
"""


def _any_project(random: Random) -> str:
    """Feeds, steps and costs of any kind."""
    nodes = ["edge", "centre"][: random.choice((1, 1, 2))]
    lines = ["name: outputs", f"nodes: {{{', '.join(f'{name}: {{}}' for name in nodes)}}}", "feeds:"]
    feeds = [f"f{number}" for number in range(random.choice((1, 2, 3, 4)))]
    periods = random.choice(((10,), (30,), (4, 10, 25), (2, 40)))
    scale = random.choice((0.2, 1.0, 1.0))
    lines += [f"  {name}: {_feed(random, random.choice(periods), nodes)}" for name in feeds]
    lines.append("tables:")
    lines += [f"  t{feed}: {{feed: {feed}, cost: {_cost(random, scale)}}}" for feed in feeds]
    sources: dict[str, list[str]] = {}
    known = [f"t{feed}" for feed in feeds]
    for number in range(random.randint(1, 4)):
        read = random.sample(known, min(len(known), random.choice((1, 1, 2, 4))))
        sources[f"s{number}"] = read
        known.append(f"s{number}")
    used = {name for read in sources.values() for name in read}
    for name, read in sources.items():
        keys = [f"sources: [{', '.join(read)}]", f"cost: {_cost(random, scale)}"]
        if random.random() < 0.2:
            keys.append(f"align: {random.choice((3, 7, 10, 30))}s")
        if random.random() < 0.3:
            keys.append(f"selectivity: {random.choice((0.25, 0.5, 2))}")
        if name not in used:
            keys.append("deadline: 1h")
        lines.append(f"  {name}: {{{', '.join(keys)}}}")
    for feed in feeds:
        if f"t{feed}" not in used:
            lines[lines.index("tables:") + 1 + feeds.index(feed)] = (
                f"  t{feed}: {{feed: {feed}, cost: {_cost(random, scale)}, deadline: 1h}}"
            )
    return "\n".join(lines)


def _feed(random: Random, period: int, nodes: list[str]) -> str:
    keys = [f"period: {period}s", f"node: {random.choice(nodes)}", f"burst: {random.randint(1, 100)}"]
    for key, chance, most in (
        ("jitter", 0.5, 0.4),
        ("timestamp_jitter", 0.5, 1.5),
        ("age", 0.5, 2.0),
        ("lateness", 0.25, 1.0),
        ("phase", 0.4, 1.5),
    ):
        if random.random() < chance:
            keys.append(f"{key}: {random.randint(0, int(most * period * 1000))}ms")
    return f"{{{', '.join(keys)}}}"


def _cost(random: Random, scale: float) -> str:
    keys = [f"startup: {int(scale * random.choice((50, random.randint(50, 2000))))}ms"]
    if random.random() < 0.5:
        keys.append(f"per_row: {int(scale * random.randint(10, 20_000))}us")
    if random.random() < 0.3:
        keys.append("variability: 0.3")
    return f"{{{', '.join(keys)}}}"


def _with_deadlines(warehouse: Warehouse, random: Random) -> Warehouse:
    """The warehouse with deadlines that suit the age of its records and the costs of its steps.

    Most often they are as short as a placement allows, for then a proof that counts too little is wrong.
    """
    steps = PlacedSteps(warehouse)
    needed_us = sum(map(steps.burst_us, warehouse.steps))
    left_us = {
        name: int(needed_us * random.uniform(0.2, 3.0)) + SECOND // 5
        for name, step in warehouse.steps.items()
        if step.deadline_us is not None
    }
    found = _with_left(steps, left_us)
    placement = plan_outputs(found, 5.0).placement
    if random.random() < 0.3 or placement is None or placement.infeasible is None:
        return found
    stretch = placement.infeasible.stretch or 1.0
    return _with_left(steps, {name: ceil(us * stretch * (1 + 1e-5)) for name, us in left_us.items()})


def _with_left(steps: PlacedSteps, left_us: Mapping[str, int]) -> Warehouse:
    """The warehouse with deadlines that leave each output so much time."""
    found = {**steps.warehouse.steps}
    for name, us in left_us.items():
        deadline_us = found[name].deadline_us
        assert deadline_us is not None
        found[name] = replace(found[name], deadline_us=deadline_us - steps.left_us(name) + us)
    return replace(steps.warehouse, steps=found)
