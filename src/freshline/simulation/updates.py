"""Simulated updates of tables: their costs, their ends, and the observed tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Protocol

from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.simulation.assertions import Assertions
from freshline.simulation.conditions.failures import JobFailures
from freshline.simulation.conditions.gaps import next_row
from freshline.simulation.conditions.spans import Spans
from freshline.simulation.kind import SimulatedKind
from freshline.simulation.observation import SimulatedObservation


class UpdateCosts(Protocol):
    """The costs of the updates of one table, one after another."""

    def draw_us(self, length_us: int) -> int: ...


class UpdateWitness(Protocol):
    """Is called for every successful update."""

    def finished(self, now: int, job: Update, freshness: int) -> None: ...


class SlowedCosts:
    """A table's costs, multiplied; rounded down, at least 1 µs."""

    __slots__ = ("_denominator", "_draw_us", "_numerator")

    def __init__(self, costs: UpdateCosts, factor: Fraction) -> None:
        self._draw_us = costs.draw_us
        self._numerator = factor.numerator
        self._denominator = factor.denominator

    def draw_us(self, length_us: int) -> int:
        return self._draw_us(length_us) * self._numerator // self._denominator or 1


class SimulatedUpdates(SimulatedKind[Update]):
    """The simulated jobs of tables. `costs` are by table.

    `gaps` has by table when its sources have no rows; without it they always have. Without `failures` no job
    fails; without `assertions` no asserted bounds are recorded.
    """

    job = Update

    def __init__(
        self,
        costs: Mapping[str, UpdateCosts],
        witness: UpdateWitness | None = None,
        gaps: Mapping[str, Spans] | None = None,
        failures: JobFailures | None = None,
        assertions: Assertions | None = None,
    ) -> None:
        self.observation = SimulatedObservation()
        self._draw_us = {name: cost.draw_us for name, cost in costs.items()}
        self._witness = witness
        self._gaps = gaps
        self._failures = failures
        self._assertions = assertions

    def begins(self, kernel: Kernel) -> None:
        if self._assertions is not None:
            self._assertions.begins(kernel)

    def cost_us(self, job: Update) -> int:
        drawn_us = self._draw_us[job.task.name](job.length_us)
        if job.updates > 1 and job.task.batch_cost is not None:
            return min(drawn_us, job.worst_case_us)  # the known cost of batches is right
        return drawn_us

    def ended(self, now: int, job: Update) -> Event:
        if self._failures is not None:
            retry_at = self._failures.fails(job.task.name, now)
            if retry_at is not None:
                if self._assertions is not None:
                    self._assertions.failed(now, job)
                return JobFailed(job, retry_at)
        self.observation.finished(now, job)
        freshness = job.loaded_to if self._gaps is None else self._reached(job, self._gaps)
        if self._assertions is not None:
            self._assertions.finished(now, job, freshness)
        if self._witness is not None:
            self._witness.finished(now, job, freshness)
        return UpdateFinished(job, freshness)

    def crashed(self, now: int) -> None:
        if self._failures is not None:
            self._failures.forget()
        if self._assertions is not None:
            self._assertions.crashed(now)

    def node_crashed(self, now: int, tasks: Collection[str]) -> None:
        if self._failures is not None:
            self._failures.forget(tasks)
        if self._assertions is not None:
            self._assertions.node_crashed(now, tasks)

    def node_began(self, kernel: Kernel, tasks: Collection[str]) -> None:
        if self._assertions is not None:
            self._assertions.node_began(kernel)

    def over(self, end: int, kernel: Kernel) -> None:
        self.observation.ended(end, kernel)
        if self._assertions is not None:
            self._assertions.over(end)

    def _reached(self, job: Update, gaps: Mapping[str, Spans]) -> int:
        """How fresh a job makes its table, which skips time in which its sources have no rows."""
        if job.jump_to == job.loaded_to:
            return job.loaded_to
        return job.task.intake.jumped(job, next_row(gaps[job.task.name], job.loaded_to))
