"""A number of tracks under one policy."""

from __future__ import annotations

from heapq import heappush
from typing import Any

from freshline.kernel.core.controller import Controller
from freshline.kernel.core.events import Instruction, Start
from freshline.kernel.core.job import Job
from freshline.kernel.core.order import Order, ReadyJob
from freshline.kernel.core.task import Task


class TrackPool:
    """Gives free tracks to jobs, in the order of its policy."""

    __slots__ = ("_touched", "controller", "idle", "name", "order", "running", "tracks", "tracks_from")

    def __init__(
        self, name: str, tracks: int, tracks_from: int, order: Order[Any], touched: list[TrackPool]
    ) -> None:
        assert tracks >= 1, "a pool without tracks"
        self.name = name
        self.tracks = tracks
        self.tracks_from = tracks_from  # tracks are numbered across all pools
        self.order = order
        self.controller: Controller[Any] | None = order.controller
        self.idle = list(range(tracks_from, tracks_from + tracks))  # a heap: the lowest number goes first
        self.running: dict[int, Job] = {}  # by track
        self._touched = touched

    def adopt(self, order: Order[Any]) -> None:
        """Switches to another order. The caller adds the ready jobs to it again."""
        self.order = order
        self.controller = order.controller
        self._touched.append(self)

    def join(self, task: Task) -> None:
        """Makes the task's jobs run here."""
        task.pool = self
        self.order.joined(task)

    def add(self, entry: ReadyJob) -> None:
        """The job is ready."""
        self.order.add(entry)
        self._touched.append(self)

    def expect(self, entry: ReadyJob) -> None:
        """All work of the job is there, but it is not released yet."""
        self.order.expect(entry)
        self._touched.append(self)

    def touch(self) -> None:
        """Something has changed: dispatch checks again which job could start."""
        self._touched.append(self)

    def release_track(self, job: Job, now: int) -> None:
        if self.controller is not None:
            self.controller.ended(job, now)
        del self.running[job.track]
        heappush(self.idle, job.track)
        self._touched.append(self)

    def put_aside(self, job: Job) -> None:
        """The job is paused, and goes on later."""
        raise AssertionError(f"{job!r} is paused, which pool {self.name} does not allow")

    def validate(self) -> None:
        """Raises AssertionError if its state is inconsistent."""

    def dispatch(self, now: int, instructions: list[Instruction]) -> None:
        """Starts jobs while there are idle tracks and jobs to run on them."""
        order = self.order
        idle = self.idle
        if self.controller is not None:
            self.controller.review(now)
        while idle:
            entry = order.take(now, idle)
            if entry is None:
                return
            track = order.track_for(entry, idle)
            job = self.running[track] = entry.begin(now, track)
            instructions.append(Start(job))
