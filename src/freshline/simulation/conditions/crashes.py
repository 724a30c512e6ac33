"""Crashes of the runner: it is down for a while, and restarts from what it had committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from freshline.base.duration import format_duration
from freshline.base.errors import InputError
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.planning.plan.plan import Plan
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


def crash(
    driver: SimulatedDriver, plan: Plan, kinds: Iterable[SimulatedKind[Any]], start: int, back_at: int
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
    kernel = assemble(plan, back_at, freshness, live=False)
    in_order = sorted(found, key=lambda each: (each[0].timestamp, each[1], each[0]))
    events: list[Event] = [FileArrived(feed, file, tables) for file, feed, tables in in_order]
    driver.resume(back_at, kernel, events, freshness)
    return kernel
