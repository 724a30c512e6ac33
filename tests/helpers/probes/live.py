"""Probes in a live run: what a track does, what its end means, and a section of the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.messages import JobEnded
from freshline.live.loop.work import Work
from freshline.live.status.section import StatusSection
from probes.in_kernel import NAME, Probe, Probed


@dataclass(frozen=True)
class ProbeStatus:
    """The probes at one instant."""

    name: str
    taken: int

    def record(self) -> dict[str, Any]:
        return dict(vars(self))


class ProbeSection(StatusSection[ProbeStatus]):
    name = "probes"
    rank = 9

    def read(self, record: dict[str, Any]) -> ProbeStatus:
        return ProbeStatus(**record)

    def view(self, rows: Sequence[ProbeStatus], as_of_us: int) -> list[Any]:
        return [Text(f"{row.name}: {row.taken} taken") for row in rows]


PROBES = ProbeSection()


class ProbeWorker:
    """Asks Spark for a number."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, job: Probe) -> int:
        return self._session.range(job.number).count()


class ProbeJudge:
    def judge(self, ended: JobEnded, now: int) -> Event:
        assert isinstance(ended.outcome, int), ended.outcome
        return Probed(job=ended.job, value=ended.outcome)


class ProbeWork(Work):
    """The probes of a run."""

    def kinds(self) -> Kinds:
        session = self.opening.resources.session
        return {Probe: JobKind(lambda track: ProbeWorker(session), ProbeJudge())}

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        return {PROBES.name: (ProbeStatus(NAME, len(kernel.task(NAME).seen)),)}
