"""Scripted schedules: the cost of each job and the arrival of each file are given.

Tests replay the worked examples of the papers with them, job by job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import DataFile
from freshline.kernel.tables.update import Update
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.updates import SimulatedUpdates


class FixedCosts:
    """Costs in a fixed order; the last one repeats."""

    def __init__(self, costs_us: Sequence[int]) -> None:
        assert costs_us, "at least one cost"
        self._costs_us = list(costs_us)

    def draw_us(self, length_us: int) -> int:
        return self._costs_us.pop(0) if len(self._costs_us) > 1 else self._costs_us[0]


class FixedFiles:
    """Files that arrive at given instants with given timestamps."""

    def __init__(self, arrivals: Iterable[tuple[int, int]]) -> None:
        self._coming = [
            (at, DataFile(timestamp, number)) for number, (at, timestamp) in enumerate(arrivals, 1)
        ]

    def next(self) -> tuple[int, DataFile] | None:
        return self._coming.pop(0) if self._coming else None


class FinishedJob(NamedTuple):
    """A job that has run."""

    table: str
    number: int
    release: int
    deadline: int
    start: int
    finish: int
    loaded_from: int
    loaded_to: int


class Schedule:
    """The jobs of a run, in the order in which they ended."""

    def __init__(self) -> None:
        self.jobs: list[FinishedJob] = []

    def finished(self, now: int, job: Update, freshness: int) -> None:
        self.jobs.append(
            FinishedJob(
                job.task.name,
                job.number,
                job.release,
                job.deadline,
                job.start,
                now,
                job.loaded_from,
                job.loaded_to,
            )
        )

    def of(self, table: str) -> list[FinishedJob]:
        return [job for job in self.jobs if job.table == table]


def play(
    kernel: Kernel,
    end: int,
    costs_us: Mapping[str, Sequence[int]],
    files: Mapping[str, Iterable[tuple[int, int]]],
) -> Schedule:
    """Runs a kernel with a script up to `end`, and checks its invariants.

    `costs_us` has the costs of each table, `files` the (arrival, timestamp) pairs of each feed.
    """
    schedule = Schedule()
    costs = {task.name: FixedCosts(costs_us[task.name]) for task in kernel.tasks}
    coming = {feed: FixedFiles(arrivals) for feed, arrivals in files.items()}
    SimulatedDriver(kernel, {Update: SimulatedUpdates(costs, schedule)}, coming).run(end)
    validate(kernel)
    return schedule
