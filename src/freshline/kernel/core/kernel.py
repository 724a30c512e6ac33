"""The kernel: takes the events of an instant, returns instructions."""

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

    Its tasks hold their own state, such as a table's freshness and backlog. A driver calls `handle` with all
    events of one instant, carries out the instructions, and calls again at the next event or at `wake_at`.
    The same calls always give the same instructions.
    """

    def __init__(self) -> None:
        self.now = 0
        self.tasks: list[Task] = []  # in the order of definition
        self._by_name: dict[str, Task] = {}
        self.pools: list[TrackPool] = []
        self.timers = Timers()
        self.touched: list[TrackPool] = []  # pools with something new to dispatch
        self.outbox: list[Instruction] = []  # instructions of tasks, beside the starts by their pools
        self.readers: dict[str, list[FeedReader]] = {}  # by feed: the tasks that load its files
        # By name: tables that another kernel updates. A kernel may run only a part of a warehouse.
        self.elsewhere: dict[str, Any] = {}

    @property
    def wake_at(self) -> int:
        """When to call `handle` even without an event; at once if jobs are ready from the start."""
        return self.now if self.touched else self.timers.earliest()

    def add(self, task: Task) -> None:
        """Adds a task after the existing ones."""
        assert task.name not in self._by_name, f"a second {task!r}"
        self.tasks.append(task)
        self._by_name[task.name] = task

    def remove(self, task: Task) -> None:
        """Removes a task without a running job, its waiting job and its timers."""
        assert task.job is None, f"{task!r} is at work"
        task.state = IDLE
        task.pool.order.left(task)
        self.timers.drop(task.rule)
        for readers in self.readers.values():
            readers[:] = [reader for reader in readers if reader.name != task.name]
        self.tasks.remove(task)
        del self._by_name[task.name]

    def task(self, name: str) -> Task:
        return self._by_name[name]

    def begin(self, now: int) -> None:
        """Sets the first timers. The assembly calls it once, when all tasks and pools are there."""
        self.now = now
        for task in self.tasks:
            task.rule.begin(now)
        for pool in self.pools:
            pool.order.begin(now)

    def running(self, name: str, number: int) -> Job:
        """The running job of that task and number."""
        job = self._by_name[name].running(number)
        if job is None:
            raise JobNotRunning(f"it ends job {number} of {name}, which is not running")
        return job

    def handle(self, now: int, events: Sequence[Event], closing: bool = False) -> list[Instruction]:
        """Takes all events of one instant by their priority, lets timers go off, and dispatches once.

        `closing`: the run ends, so the kernel takes events and starts nothing.
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
