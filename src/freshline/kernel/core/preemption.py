"""A track with preemption: a ready job may pause the running one."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from freshline.kernel.core.events import Instruction, Pause, Start
from freshline.kernel.core.job import Job
from freshline.kernel.core.order import Order
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.task import PAUSED, RUNNING


class PreemptivePool(TrackPool):
    """A pool of one track that asks its running job to pause if a ready job goes first.

    The pause takes a while. Meanwhile the job may end, and ready jobs may come and go. So the pool chooses
    the next job when the track is free.
    """

    __slots__ = ("_aside", "_asked")

    def __init__(
        self, name: str, tracks: int, tracks_from: int, order: Order[Any], touched: list[TrackPool]
    ) -> None:
        super().__init__(name, tracks, tracks_from, order, touched)
        assert tracks == 1, f"pool {name} pauses jobs, and has {tracks} tracks"
        self._aside: dict[str, Job] = {}  # by task: paused jobs
        self._asked: Job | None = None  # the running job, once it was asked to pause

    def put_aside(self, job: Job) -> None:
        self._asked = None
        del self.running[job.track]
        heappush(self.idle, job.track)
        self._aside[job.task.name] = job
        self.add(job.task)

    def release_track(self, job: Job, now: int) -> None:
        self._asked = None
        super().release_track(job, now)

    def dispatch(self, now: int, instructions: list[Instruction]) -> None:
        """Starts the first job if the track is free; otherwise asks the running job to pause if need be."""
        if self.controller is not None:
            self.controller.review(now)
        if self.idle:
            entry = self.order.take(now, self.idle)
            if entry is None:
                return
            track = heappop(self.idle)
            job = self._aside.pop(entry.name, None)
            if job is None:
                job = entry.begin(now, track)
            else:
                job.track = track
                job.task.state = RUNNING
            self.running[track] = job
            instructions.append(Start(job))
        elif self._asked is None:
            (job,) = self.running.values()
            if self.order.goes_before(job):
                self._asked = job
                instructions.append(Pause(job))

    def validate(self) -> None:
        assert all(job.task.state == PAUSED and job.task.job is job for job in self._aside.values())
        for job in self.running.values():
            assert self._asked is job or not self.order.goes_before(job), "it was not asked to pause"
        assert self._asked is None or self._asked in self.running.values()
