"""The steps of a placement, in a kernel: a pool of one track for each node."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.steps.orders import order_of
from freshline.kernel.steps.release import OnAdvance
from freshline.kernel.steps.task import StepTask, StepTerms
from freshline.kernel.tables.remote_table import RemoteTable
from freshline.planning.plan.step_placement import StepPlacement


def add_step_tasks(
    kernel: Kernel,
    warehouse: Warehouse,
    placed: StepPlacement,
    freshness: Mapping[str, int | None] | None,
    node: str | None,
) -> None:
    """The steps, or those of a node; those of other nodes that they read are elsewhere."""
    readers = _readers(warehouse)
    following = {step: after for task in placed.tasks for step, after in pairwise(task)}
    steps: dict[str, StepTask] = {}
    for place, name in enumerate(warehouse.step_order):
        if node is not None and placed.nodes[name] != node:
            continue
        step = warehouse.steps[name]
        found = 0 if freshness is None else freshness.get(name)
        sources = [steps.get(source) or elsewhere(kernel, source, freshness) for source in step.sources]
        own = warehouse.nodes[placed.nodes[name]]
        terms = StepTerms(
            placed.costs_us[name],
            placed.sub_deadlines_us[name],
            0 if own.policy == "fifo" else placed.limits_us.get(own.name, 0),  # that goes by single steps
            step.deadline_us is not None or readers[name] != [following.get(name)],
            step.align_us,
            0 if step.feed is None else warehouse.feeds[step.feed].period_us or 0,
        )
        task = steps[name] = StepTask(place, name, terms, sources, found)
        task.rule = OnAdvance(task)
        for source in sources:
            source.dependents.append(task)
        if step.feed is not None:
            kernel.readers.setdefault(step.feed, []).append(task)
    for before, after in following.items():
        if before in steps and after in steps:
            steps[after].follow(steps[before])
    for name in warehouse.steps:
        if name in steps:
            kernel.add(steps[name])


def add_node_pools(
    kernel: Kernel, warehouse: Warehouse, placed: StepPlacement, first_track: int, node: str | None
) -> None:
    """A pool of one track for each node, or for that one."""
    for name, defined in warehouse.nodes.items():
        if node is not None and name != node:
            continue
        order = order_of(defined.policy)
        tracks_from = first_track + sum(pool.tracks for pool in kernel.pools)
        pool = TrackPool(name, 1, tracks_from, order, kernel.touched)
        kernel.pools.append(pool)
        for step in warehouse.steps:
            if placed.nodes[step] == name:
                pool.join(kernel.task(step))


def elsewhere(kernel: Kernel, name: str, freshness: Mapping[str, int | None] | None) -> RemoteTable:
    """A table that another kernel updates, as this one knows it."""
    found = kernel.elsewhere.get(name)
    if found is None:
        found = RemoteTable(name, 0 if freshness is None else freshness.get(name) or 0)
        kernel.elsewhere[name] = found
    assert isinstance(found, RemoteTable)
    return found


def _readers(warehouse: Warehouse) -> dict[str, list[str]]:
    """By step, the tables and steps that read it."""
    readers: dict[str, list[str]] = {name: [] for name in warehouse.steps}
    for name, table in warehouse.stored.items():
        for source in table.sources:
            if source in readers:
                readers[source].append(name)
    return readers
