"""What a kernel knows of a table, and the task made from it."""

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
    """What a kernel needs to know of a table."""

    name: str
    pool: str
    period_us: int
    worst_case_us: int
    feed: str | None  # of a base table
    arrival: Literal["files", "continuous"] = "files"
    sources: tuple[str, ...] = ()  # of a derived table
    released_by_files: bool = True  # whether there are files upstream
    align_us: int | None = None
    phase_us: int = 0  # if it is released periodically
    startup_us: int = 0
    freshness: int | None = None  # None if nothing was loaded yet


def make_task(kernel: Kernel, table: TableSpec, place: int, sources: Sequence[Source]) -> TableTask:
    """A task that its sources know as dependent. It is in no pool and not in `kernel.tasks` yet."""
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
