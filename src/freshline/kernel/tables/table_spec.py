"""A table that comes to a kernel: what is to be known of it, and the task that is made of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from freshline.kernel.tables.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.kernel.tables.release import PeriodicRelease, StaleRelease
from freshline.kernel.tables.task import TableTask

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.tables.source import Source


@dataclass(frozen=True, slots=True)
class TableSpec:
    """All that a kernel has to know of a table that comes to it."""

    name: str
    pool: str
    period_us: int
    worst_case_us: int
    feed: str | None  # of a base table
    arrival: Literal["files", "continuous"] = "files"
    sources: tuple[str, ...] = ()  # of a derived table
    released_by_files: bool = True  # whether there are files somewhere upstream
    align_us: int | None = None
    phase_us: int = 0  # where it is released periodically
    startup_us: int = 0
    freshness: int | None = None  # None where nothing was loaded yet


def make_task(kernel: Kernel, table: TableSpec, place: int, sources: Sequence[Source]) -> TableTask:
    """Its task, of which those that it reads from know. It is in no pool, and not among the tasks, yet."""
    intake = _intake(table, sources)
    task = TableTask(place, table.name, table.period_us, table.worst_case_us, intake, table.startup_us)
    task.freshness, task.empty = table.freshness or 0, table.freshness is None
    intake.seen(task.freshness)
    if not table.released_by_files:
        task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
        return task
    task.rule = StaleRelease(task, kernel.timers)
    for source in sources:
        source.dependents.append(task)
    if table.feed is not None:
        kernel.readers.setdefault(table.feed, []).append(task)
    return task


def _intake(table: TableSpec, sources: Sequence[Source]) -> Intake:
    if table.feed is None:
        return DerivedIntake(sources, table.align_us)
    return ContinuousIntake() if table.arrival == "continuous" else FileIntake()
