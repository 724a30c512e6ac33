"""Adds the steps of a placement to a kernel, with a pool of one track for each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.nodes import NodePolicy
from freshline.kernel.assembly.context import Assembly, elsewhere
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.preemption import PreemptivePool
from freshline.kernel.recovery.terms import FINDING_US
from freshline.kernel.steps.orders import order_of
from freshline.kernel.steps.recoveries import StepRecoveries
from freshline.kernel.steps.release import OnAdvance
from freshline.kernel.steps.task import StepTask, StepTerms
from freshline.planning.plan.step_graph import least_distance_us
from freshline.planning.plan.step_promises import StepPromises
from freshline.planning.plan.step_recovery import StepRecovery


class StepSpec(NamedTuple):
    """What a kernel needs to know of a step."""

    place: int
    name: str
    terms: StepTerms
    sources: Sequence[str]
    feed: str | None = None
    freshness: int | None = 0  # None if nothing was loaded yet


def make_steps(
    kernel: Kernel,
    steps: Iterable[StepSpec],
    units: Iterable[Sequence[str]],
    found: Mapping[str, int | None] | None = None,
) -> dict[str, StepTask]:
    """The tasks of steps given in topological order; they are in no pool and not in `kernel.tasks` yet.

    `units` are the steps that belong together (paper 002, 5.3). A source that is not among the steps is a
    remote table, with its freshness from `found`.
    """
    tasks: dict[str, StepTask] = {}
    for step in steps:
        sources = [
            tasks.get(name) or elsewhere(kernel, name, (found or {}).get(name) or 0) for name in step.sources
        ]
        task = tasks[step.name] = StepTask(step.place, step.name, step.terms, sources, step.freshness)
        task.rule = OnAdvance(task)
        for source in sources:
            source.dependents.append(task)
        if step.feed is not None:
            kernel.readers.setdefault(step.feed, []).append(task)
    for unit in units:
        for before, after in pairwise(unit):
            if before in tasks and after in tasks:
                tasks[after].follow(tasks[before])
    return tasks


def leaving_steps(
    reads: Mapping[str, Iterable[str]], outputs: Iterable[str], units: Iterable[Sequence[str]]
) -> set[str]:
    """The steps with a result that is an output, or that more than the next step of the unit reads.

    `reads` has the sources of each table and step.
    """
    readers: dict[str, list[str]] = {}
    for name, sources in reads.items():
        for source in sources:
            readers.setdefault(source, []).append(name)
    inside = {before for unit in units for before, after in pairwise(unit) if readers.get(before) == [after]}
    return {*outputs, *(name for name in reads if name not in inside)}


def add_node(
    kernel: Kernel, name: str, policy: NodePolicy, track: int, steps: Iterable[str], preemptive: bool = False
) -> None:
    """Adds a pool of one track for a node, with its steps."""
    order = order_of(policy)
    order.preemptive = preemptive
    pool = (PreemptivePool if preemptive else TrackPool)(name, 1, track, order, kernel.touched)
    kernel.pools.append(pool)
    for step in steps:
        pool.join(kernel.task(step))


def add_step_tasks(assembly: Assembly) -> None:
    """Adds the steps that run here; steps of other nodes that they read become remote tables."""
    warehouse, placed, node = assembly.warehouse, assembly.plan.placed, assembly.node
    if placed is None:
        return
    reads = {name: table.sources for name, table in warehouse.stored.items()}
    outputs = [name for name, step in warehouse.steps.items() if step.deadline_us is not None]
    leaving = leaving_steps(reads, outputs, placed.tasks)
    recovery = StepRecovery(warehouse, placed)
    specs = []
    for place, name in enumerate(warehouse.step_order):
        if node not in (None, placed.nodes[name]):
            continue
        step, own = warehouse.steps[name], warehouse.nodes[placed.nodes[name]]
        terms = StepTerms(
            placed.costs_us[name],
            placed.sub_deadlines_us[name],
            0 if own.policy == "fifo" else placed.limits_us.get(own.name, 0),  # fifo runs single steps
            name in leaving,
            step.align_us,
        )
        if step.feed is not None:
            most = 1 if own.policy == "fifo" else recovery.files_most(name)
            terms = _with_feed(terms, warehouse.feeds[step.feed], most, assembly.live)
        specs.append(StepSpec(place, name, terms, step.sources, step.feed, assembly.found(name)))
    tasks = make_steps(assembly.kernel, specs, placed.tasks, assembly.freshness)
    # With one node's steps it is not known when others have recovered.
    outputs_here = {name: recovery.upstream[name] for name in outputs} if node is None else {}
    recoveries = StepRecoveries(StepPromises(recovery), outputs_here, placed.unproven)
    for name in warehouse.steps:
        if name in tasks:
            assembly.kernel.add(tasks[name])
            recoveries.join(tasks[name])


def _with_feed(terms: StepTerms, feed: Feed, files_most: int, live: bool) -> StepTerms:
    """The terms of a step that loads a feed."""
    assert feed.period_us is not None
    return replace(
        terms,
        burst_us=feed.period_us,
        distance_us=least_distance_us(feed),
        finding_us=min(FINDING_US, feed.period_us // 4) if live else 0,
        files_most=files_most,
    )


def add_node_pools(assembly: Assembly) -> None:
    """Adds a pool of one track for each node, or for this kernel's node only."""
    warehouse, placed = assembly.warehouse, assembly.plan.placed
    if placed is None:
        return
    for name, node in warehouse.nodes.items():
        if assembly.node in (None, name):
            steps = [step for step in warehouse.steps if placed.nodes[step] == name]
            add_node(assembly.kernel, name, node.policy, assembly.next_track, steps)
