"""A number of tracks under one policy."""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

from freshline.kernel.events import Instruction, Start
from freshline.kernel.job import Job
from freshline.kernel.task import RUNNING, Task

if TYPE_CHECKING:
    from freshline.policies.order import Order


class Pool:
    """Gives free tracks to jobs in the order that its policy says."""

    __slots__ = ("_touched", "idle", "name", "order", "running", "tracks", "tracks_from")

    def __init__(self, name: str, tracks: int, tracks_from: int, order: Order, touched: list[Pool]) -> None:
        assert tracks >= 1, "a pool without tracks"
        self.name = name
        self.tracks = tracks
        self.tracks_from = tracks_from  # tracks are numbered through all pools
        self.order = order
        self.idle = list(range(tracks_from, tracks_from + tracks))  # a heap: the lowest number goes first
        self.running: dict[int, Job] = {}  # by track
        self._touched = touched

    def add(self, task: Task) -> None:
        """The task's job is ready."""
        self.order.add(task)
        self._touched.append(self)

    def expect(self, task: Task) -> None:
        """The task's job is not released yet, but all its work is there."""
        self.order.expect(task)
        self._touched.append(self)

    def late(self, task: Task) -> None:
        """The task's table is behind by more than its threshold."""
        self.order.late(task)
        self._touched.append(self)

    def recovered(self, task: Task) -> None:
        """The task has left recovery mode."""
        self.order.recovered(task)
        self._touched.append(self)

    def touch(self) -> None:
        """Something has changed: look again which job could start."""
        self._touched.append(self)

    def release_track(self, job: Job, now: int) -> None:
        if self.order.adapts:
            self.order.ended(job, now)
        del self.running[job.track]
        heappush(self.idle, job.track)
        self._touched.append(self)

    def dispatch(self, now: int, instructions: list[Instruction]) -> None:
        """Starts jobs while there are idle tracks and jobs to run on them."""
        order = self.order
        idle = self.idle
        if order.adapts:
            order.review(now)
        while idle:
            task = order.take(now, idle)
            if task is None:
                return
            track = order.track_for(task, idle)
            batch = order.batch
            loaded_to, jump_to, files = task.intake.claim(task, now, batch)
            task.jobs_started += 1
            job = Job(
                task,
                task.jobs_started,
                task.release,
                task.deadline,
                now,
                track,
                task.freshness,
                loaded_to,
                files,
            )
            if jump_to > loaded_to and order.may_jump(task, now):
                job.jump_to = jump_to
            if batch != 1:
                job.updates = batch or len(files) or max(1, -(-job.length_us // task.period_us))
            if batch is None:
                task.rule.absorb()
            elif now < task.release:
                task.rule.started_early(now)
            task.job = job
            task.state = RUNNING
            self.running[track] = job
            instructions.append(Start(job))
