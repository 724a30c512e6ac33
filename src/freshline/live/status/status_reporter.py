"""Makes the status of a running warehouse from its kinds of work and the notes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.run_notes import RunNotes
from freshline.live.status.status import PoolStatus, Progress, TrackStatus, WarehouseStatus
from freshline.planning.plan.plan import Plan

# The rows of some sections, by the section's name.
Rows = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The run of a status."""

    warehouse: str
    run_id: str
    node: str | None = None


class StatusReporter:
    """Makes the status, a frozen record. Only the driver's thread uses it.

    `sources` give the rows of their sections; each kind of work adds its own source.
    """

    def __init__(
        self,
        run: RunIdentity,
        plan: Plan,
        notes: RunNotes,
        progress: Callable[[], Progress | None],
        recoveries: Callable[[int, Kernel], tuple[str, ...]],
    ) -> None:
        self._run = run
        self._notes = notes
        self._progress = progress
        self._recoveries = recoveries
        self.sources: list[Callable[[int, Kernel], Rows]] = []
        self.learn(plan)

    def learn(self, plan: Plan) -> None:
        """Uses a plan with newly known costs and bounds."""
        self._pools = tuple(
            PoolStatus(pool.name, pool.policy, pool.behaves_as(plan.tables)) for pool in plan.pools
        )

    def status(self, now: int, kernel: Kernel) -> WarehouseStatus:
        sections: dict[str, tuple[Any, ...]] = {}
        for source in self.sources:
            sections |= source(now, kernel)
        return WarehouseStatus(
            name=self._run.warehouse,
            run_id=self._run.run_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            at_us=now,
            started_us=self._notes.started,
            tracks=_tracks(kernel),
            broken_assumptions=tuple(self._notes.lines),
            quarantined=self._notes.quarantined,
            recoveries=self._recoveries(now, kernel),
            pools=self._pools,
            starting=self._progress(),
            node=self._run.node,
            sections=sections,
        )


def _tracks(kernel: Kernel) -> tuple[TrackStatus, ...]:
    return tuple(
        TrackStatus(track, pool.name, job.task.name if job else None, job.start if job else None)
        for pool in kernel.pools
        for track in range(pool.tracks_from, pool.tracks_from + pool.tracks)
        for job in [pool.running.get(track)]
    )
