"""Probes in simulated time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.simulation.kind import SectionResult, SimulatedKind, SimulationSetup
from probes.in_kernel import NAME, Probe, Probed


@dataclass(frozen=True, slots=True)
class ProbeResult(SectionResult):
    """What a run showed of the probes."""

    section = "probes"
    taken: int

    def record(self) -> dict[str, int]:
        return {"taken": self.taken}

    def shown(self) -> dict[str, str]:
        return {"taken": str(self.taken)}


class SimulatedProbes(SimulatedKind[Probe]):
    """Each probe takes 10 ms, and sees its own number."""

    job = Probe

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self:
        return cls()

    def cost_us(self, job: Probe) -> int:
        return 10_000

    def ended(self, now: int, job: Probe) -> Event:
        return Probed(job=job, value=job.number)

    def results(self, kernel: Kernel, end: int) -> list[ProbeResult]:
        return [ProbeResult(len(kernel.task(NAME).seen))]
