"""Simulated updates of tables: what they cost, how they end, and what is seen of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from freshline.kernel.events import Event
from freshline.kernel.kernel import Kernel
from freshline.simulation.gaps import next_row
from freshline.simulation.observation import Observation
from freshline.simulation.spans import Spans
from freshline.tables.events import Finished
from freshline.tables.update import Update


class UpdateCosts(Protocol):
    """What the updates of one table cost, one after the other."""

    def draw_us(self, length_us: int) -> int: ...


class Witness(Protocol):
    """Someone who is told of every update that ends well."""

    def finished(self, now: int, job: Update, freshness: int) -> None: ...


class Updates:
    """The kind of job that tables have. `costs` are by table.

    `gaps` says by table when its sources have no rows; without it they always have.
    """

    def __init__(
        self,
        costs: Mapping[str, UpdateCosts],
        witness: Witness | None = None,
        gaps: Mapping[str, Spans] | None = None,
    ) -> None:
        self.observation = Observation()
        self._draw_us = {name: cost.draw_us for name, cost in costs.items()}
        self._witness = witness
        self._gaps = gaps

    def cost_us(self, job: Update) -> int:
        return self._draw_us[job.task.name](job.loaded_to - job.loaded_from)

    def ended(self, now: int, job: Update) -> Event:
        self.observation.finished(now, job)
        freshness = job.loaded_to if self._gaps is None else self._reached(job, self._gaps)
        if self._witness is not None:
            self._witness.finished(now, job, freshness)
        return Finished(job, freshness)

    def over(self, end: int, kernel: Kernel) -> None:
        self.observation.ended(end, kernel)

    def _reached(self, job: Update, gaps: Mapping[str, Spans]) -> int:
        """How fresh a job makes its table, which jumps over time in which its sources have no rows."""
        if job.jump_to == job.loaded_to:
            return job.loaded_to
        return job.task.intake.jumped(job, next_row(gaps[job.task.name], job.loaded_to))
