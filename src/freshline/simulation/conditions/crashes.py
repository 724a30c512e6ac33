"""Crashes of the runner: it is down for a while, and restarts from what it had committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from freshline.base.duration import format_duration
from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.planning.plan.step_placement import StepPlacement
from freshline.simulation.conditions.outages import downstream
from freshline.simulation.conditions.spans import Span, Spans
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.kind import SimulatedKind

# From when to when it is down.
Crash = Span
Crashes = Spans


def checked_crashes(crashes: Sequence[Crash], end: int) -> Crashes:
    """The crashes of a run that ends then, in order."""
    over = 0
    for start, back_at in sorted(crashes):
        when = f"the crash at {format_duration(start)}"
        if not 0 < start <= back_at:
            raise InputError(
                f"{when} does not lie within the run", "Let it begin after 0, and end after it begins"
            )
        if start <= over:
            raise InputError(
                f"{when} begins before the previous one is over", "Let them begin one after the other"
            )
        if back_at >= end:
            raise InputError(
                f"{when} is not over when the run of {format_duration(end)} is",
                "Let it begin earlier, or simulate for longer with --for",
            )
        over = back_at
    return tuple(sorted(crashes))


def checked_node_crashes(
    warehouse: Warehouse, node_crashes: Mapping[str, Sequence[Crash]], crashes: Crashes, end: int
) -> dict[str, Crashes]:
    """By node: its crashes in a run that ends then, in order. None may meet one of the runner."""
    for node in node_crashes:
        if node not in warehouse.nodes:
            remedy = "There are no nodes: leave the name out"
            if warehouse.nodes:
                remedy = Names("nodes", warehouse.nodes).remedy(node)
            raise InputError(f"the node `{node}`, which is to crash, does not exist", remedy)
    found = {
        node: checked_crashes(node_crashes[node], end) for node in warehouse.nodes if node_crashes.get(node)
    }
    for node, spans in found.items():
        for start, back_at in spans:
            if any(start <= over and begin <= back_at for begin, over in crashes):
                raise InputError(
                    f"the crash of {node} at {format_duration(start)} meets one of the runner",
                    "Let them begin one after the other",
                )
    return found


def delayed_by(warehouse: Warehouse, placed: StepPlacement | None, begun: Iterable[str]) -> frozenset[str]:
    """These steps, all that share a node with one, all downstream, and so on."""
    found = frozenset(begun)
    while placed is not None:
        nodes = {placed.nodes[name] for name in found}
        there = {name for name, node in placed.nodes.items() if node in nodes}
        more = downstream(warehouse, (), found | there) & warehouse.steps.keys()
        if more == found:
            break
        found = more
    return found


def crash(
    driver: SimulatedDriver,
    kinds: Iterable[SimulatedKind[Any]],
    start: int,
    back_at: int,
    assembled: Callable[[int, Mapping[str, int | None]], Kernel],
) -> Kernel:
    """Replaces the driver's kernel, which is lost with its running jobs, by a new one at `back_at`.

    The new kernel finds the tables as fresh as they were, and all files that arrived and are not loaded.
    """
    lost = driver.kernel
    came = driver.stop(start, back_at)
    found: list[tuple[DataFile, str, frozenset[str] | None]] = [(file, feed, None) for feed, file in came]
    for feed, readers in lost.readers.items():
        missing: dict[DataFile, set[str]] = {}
        for reader in readers:
            for file in reader.unloaded():
                missing.setdefault(file, set()).add(reader.name)
        for file, names in missing.items():
            found.append((file, feed, None if len(names) == len(readers) else frozenset(names)))
    freshness = {name: reached for kind in kinds for name, reached in kind.found(lost).items()}
    kernel = assembled(back_at, freshness)
    in_order = sorted(found, key=lambda each: (each[0].timestamp, each[1], each[0]))
    events: list[Event] = [FileArrived(feed, file, tables) for file, feed, tables in in_order]
    driver.resume(back_at, kernel, events, freshness)
    return kernel
