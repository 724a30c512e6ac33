"""The kernel: events of an instant in, instructions out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freshline.kernel.core.events import Event, Instruction
from freshline.kernel.core.job import Job
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.task import IDLE, FeedReader, Task
from freshline.kernel.core.timers import Timers


class JobNotRunning(Exception):  # noqa: N818  (it is what was found)
    """A journal ends a job that the kernel does not run: the line of its start is missing."""


class Kernel:
    """The state of a warehouse and the decisions about it.

    Its tasks own what is known of them, such as a table's freshness and backlog. A driver calls `handle` with
    everything that happened at one instant, carries out the instructions, and calls again when something
    happens or `wake_at` is reached. The same calls always give the same instructions.
    """

    def __init__(self) -> None:
        self.now = 0
        self.tasks: list[Task] = []  # in the order of definition
        self._by_name: dict[str, Task] = {}
        self.pools: list[TrackPool] = []
        self.timers = Timers()
        self.touched: list[TrackPool] = []  # pools with something new to dispatch
        self.outbox: list[Instruction] = []  # what tasks have to say beside what their pools start
        self.readers: dict[str, list[FeedReader]] = {}  # by feed: the tasks that load its files
        # By name, what tasks read that another kernel updates: this one may run a part of a warehouse only.
        self.elsewhere: dict[str, Any] = {}

    @property
    def wake_at(self) -> int:
        """When to call `handle` even if nothing happens before; at once, if jobs are ready from the start."""
        return self.now if self.touched else self.timers.earliest()

    def add(self, task: Task) -> None:
        """One more task, after those that are there."""
        assert task.name not in self._by_name, f"a second {task!r}"
        self.tasks.append(task)
        self._by_name[task.name] = task

    def remove(self, task: Task) -> None:
        """A task, of which no job runs, is gone, and so are its job that waits and its timers."""
        assert task.job is None, f"{task!r} is at work"
        task.state = IDLE
        task.pool.order.left(task)
        self.timers.drop(task.rule)
        for readers in self.readers.values():
            readers[:] = [reader for reader in readers if reader.name != task.name]
        self.tasks.remove(task)
        del self._by_name[task.name]

    def task(self, name: str) -> Task:
        """The task of that name."""
        return self._by_name[name]

    def begin(self, now: int) -> None:
        """Sets the first timers. Called once, when all tasks and pools are there."""
        self.now = now
        for task in self.tasks:
            task.rule.begin(now)
        for pool in self.pools:
            pool.order.begin(now)

    def running(self, name: str, number: int) -> Job:
        """The job of that task that runs and has this number."""
        job = self._by_name[name].running(number)
        if job is None:
            raise JobNotRunning(f"it ends job {number} of {name}, which is not running")
        return job

    def handle(self, now: int, events: Sequence[Event], closing: bool = False) -> list[Instruction]:
        """Takes all events of one instant and dispatches once.

        They are taken by their priority: jobs that ended, what came, what was learned and who comes or goes,
        `Drain`. Then timers go off.

        `closing`: a run ends, so events are taken and nothing is started any more.
        """
        assert now >= self.now, f"time went back from {self.now} to {now}"
        self.now = now
        if len(events) > 1:
            events = sorted(events, key=_priority)
        for event in events:
            if event.arrives:
                event.arrive(self)
        for event in events:
            event.take(self, now)
        if not closing:
            self.timers.go_off(now)
        instructions: list[Instruction] = []
        if self.outbox:
            instructions += self.outbox
            self.outbox.clear()
        if closing:
            return instructions
        touched = self.touched
        if touched:
            if len(touched) == 1:
                touched[0].dispatch(now, instructions)
            else:
                # In the order of definition, whatever happened first.
                for pool in sorted(set(touched), key=_first_track):
                    pool.dispatch(now, instructions)
            touched.clear()
        return instructions


def _priority(event: Event) -> int:
    return event.priority


def _first_track(pool: TrackPool) -> int:
    return pool.tracks_from
