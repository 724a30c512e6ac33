"""The kernel: events of an instant in, instructions out."""

from __future__ import annotations

from collections.abc import Sequence

from freshline.kernel.events import Arrived, Event, Failed, Finished, Instruction
from freshline.kernel.intake import FileIntake
from freshline.kernel.job import Job
from freshline.kernel.pool import Pool
from freshline.kernel.release import Retry
from freshline.kernel.task import BACKED_OFF, IDLE, RUNNING, Task
from freshline.kernel.timers import Timers


class Kernel:
    """The state of a warehouse and the decisions about it.

    It owns freshness, trailing edge and backlog. A driver calls `handle` with everything that happened at
    one instant, carries out the instructions, and calls again when something happens or `wake_at` is
    reached. The same calls always give the same instructions.
    """

    def __init__(self) -> None:
        self.now = 0
        self.tasks: list[Task] = []
        self.pools: list[Pool] = []
        self.timers = Timers()
        self.touched: list[Pool] = []  # pools with something new to dispatch
        self.readers: dict[str, list[Task]] = {}  # by feed: the tasks that load its files

    @property
    def wake_at(self) -> int:
        """When to call `handle` even if nothing happens before; at once, if jobs are ready from the start."""
        return self.now if self.touched else self.timers.earliest()

    def begin(self, now: int) -> None:
        """Sets the first timers. Called once, when all tasks and pools are there."""
        self.now = now
        for task in self.tasks:
            task.rule.begin(now)

    def handle(self, now: int, events: Sequence[Event], closing: bool = False) -> list[Instruction]:
        """Takes all events of one instant, in the order finished, arrived, timer, and dispatches once.

        `closing`: a run ends, so events are taken and nothing is started any more.
        """
        assert now >= self.now, f"time went back from {self.now} to {now}"
        self.now = now
        if len(events) > 1:
            events = sorted(events, key=_priority)
        for event in events:
            # A file that comes at the instant at which a job ends is there then (paper 001, (2)).
            if isinstance(event, Arrived):
                self._land(event)
        for event in events:
            if isinstance(event, Finished):
                self._finished(event, now)
            elif isinstance(event, Failed):
                self._failed(event)
            else:
                self._arrived(event, now)
        if closing:
            return []
        self.timers.go_off(now)
        instructions: list[Instruction] = []
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

    def _finished(self, event: Finished, now: int) -> None:
        job, freshness = event.job, event.freshness
        task = self._ended(job)
        assert task.freshness <= freshness <= job.jump_to, f"{event!r} is not what it may load"
        task.freshness = freshness
        task.empty = task.empty and freshness == 0
        task.state = IDLE
        task.rule.job_finished(now, job)
        for dependent in task.dependents:
            if dependent.state != RUNNING:
                dependent.rule.source_advanced(now)

    def _failed(self, event: Failed) -> None:
        task = self._ended(event.job)
        task.intake.give_back(event.job.files)
        task.state = BACKED_OFF
        task.pool.order.failed(task, self.now)
        self.timers.set(event.retry_at, Retry(task))

    def _ended(self, job: Job) -> Task:
        task = job.task
        assert task.job is job, f"{job!r} is not running"
        task.job = None
        task.pool.release_track(job, self.now)
        return task

    def _land(self, event: Arrived) -> None:
        if event.file.timestamp <= 0:
            return  # it holds nothing newer than the empty table (paper 001, (1))
        for task in self._loading(event):
            assert isinstance(task.intake, FileIntake)
            task.intake.add(event.file)

    def _arrived(self, event: Arrived, now: int) -> None:
        for task in self._loading(event):
            task.rule.source_advanced(now)

    def _loading(self, event: Arrived) -> list[Task]:
        readers = self.readers.get(event.feed, [])
        return readers if event.tables is None else [task for task in readers if task.name in event.tables]


def _priority(event: Event) -> int:
    return event.priority


def _first_track(pool: Pool) -> int:
    return pool.tracks_from
