"""The simulated driver: costs come from the cost model, and time jumps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from freshline.kernel.core.events import Cancel, Event, Instruction, JobPaused, Pause, Record, Start
from freshline.kernel.core.job import Job
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.simulation.kind import Listeners, SimulatedKind

# Instants between two reports of progress.
_INSTANTS_PER_REPORT = 20_000


class FeedFiles(Protocol):
    """The files of one feed, one after another, with their arrivals; None after the last."""

    def next(self) -> tuple[int, DataFile] | None: ...


# An event, or a function that makes it at its instant; None: nothing happens.
Telling = Event | Callable[[int], Event | None]


class SimulatedDriver:
    """Runs a kernel in simulated time. `kinds` are by type of job, `files` by feed.

    `listeners` take instructions of kinds of work beyond jobs; without any, every instruction is about a job.
    """

    def __init__(
        self,
        kernel: Kernel,
        kinds: Mapping[type[Job], SimulatedKind[Any]],
        files: Mapping[str, FeedFiles],
        journal: Journal | None = None,
        listeners: Listeners | None = None,
    ) -> None:
        self.kernel = kernel
        self._listeners = listeners or {}
        self.busy_us: dict[int, int] = {}  # by track
        self._kinds = kinds
        self._cost_us = {job: kind.cost_us for job, kind in kinds.items()}
        self._ended = {job: kind.ended for job, kind in kinds.items()}
        self._journal = journal
        self._completions: list[tuple[int, int, Job]] = []
        # Of jobs that are or will be paused: when they last went on, how long they had run until then, and
        # how long they still take.
        self._since: dict[Job, tuple[int, int]] = {}
        self._left_us: dict[Job, int] = {}
        self._files = files
        self._coming: list[tuple[int, str, DataFile]] = []
        self._told: list[tuple[int, int, Telling]] = []
        self._tellings = 0
        for feed in files:
            self._expect_file(feed)
        for kind in kinds.values():
            kind.begins(kernel)

    def tell(self, at: int, event: Telling) -> None:
        """Schedules an event for a later instant; a function decides then what happens."""
        self._tellings += 1
        heappush(self._told, (at, self._tellings, event))

    @property
    def next_at(self) -> int:
        """The next instant at which something happens."""
        instants = [self.kernel.wake_at]
        instants += [heap[0][0] for heap in (self._completions, self._coming, self._told) if heap]
        return min(instants)

    def step(self) -> None:
        """Simulates the next instant at which something happens."""
        self.advance(self.next_at)

    def run(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulates up to and including the instant `end`, and records the final state."""
        self.advance(end, progress)
        self._count_running(end)
        for kind in self._kinds.values():
            kind.over(end, self.kernel)

    def stop(self, now: int, until: int) -> list[tuple[str, DataFile]]:
        """The runner crashes before anything happens at this instant: its jobs are lost.

        Returns the files that arrive until it is back, with their feeds. Other events meanwhile move to then.
        """
        self._count_running(now)
        self._completions.clear()
        self._since.clear()
        self._left_us.clear()
        for kind in self._kinds.values():
            kind.crashed(now)
        while self._told and self._told[0][0] < until:
            self.tell(until, heappop(self._told)[2])
        came = []
        while self._coming and self._coming[0][0] <= until:
            _, feed, file = heappop(self._coming)
            came.append((feed, file))
            self._expect_file(feed)
        return came

    def lose(self, now: int, tasks: Collection[str]) -> None:
        """A node crashes before anything happens at this instant: the jobs of these tasks are lost."""
        self._count_running(now, tasks)
        self._completions[:] = [each for each in self._completions if each[2].task.name not in tasks]
        heapify(self._completions)
        self._since = {job: since for job, since in self._since.items() if job.task.name not in tasks}
        self._left_us = {job: left for job, left in self._left_us.items() if job.task.name not in tasks}
        for kind in self._kinds.values():
            kind.node_crashed(now, tasks)

    def resume(self, now: int, kernel: Kernel, events: Sequence[Event], found: Record) -> None:
        """Continues with another kernel, made from `found`, which takes these events first."""
        self.kernel = kernel
        for kind in self._kinds.values():
            kind.begins(kernel)
        if self._journal is not None:
            self._journal.restarted(now, found)
        for event in events:
            self.tell(now, event)

    def _count_running(self, now: int, tasks: Collection[str] | None = None) -> None:
        """Counts how long jobs have run that end now: those of some tasks, or all."""
        for pool in self.kernel.pools:
            for track, job in pool.running.items():
                if tasks is not None and job.task.name not in tasks:
                    continue
                since = self._since[job][0] if job in self._since else job.start
                self.busy_us[track] = self.busy_us.get(track, 0) + now - since

    def advance(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulates up to and including the instant `end`."""
        kernel = self.kernel
        completions = self._completions
        coming = self._coming
        told = self._told
        cost_us = self._cost_us
        journal = self._journal
        in_parts = bool(self._listeners) or any(pool.order.preemptive for pool in kernel.pools)
        instants = 0
        while True:
            now = kernel.wake_at
            if completions and completions[0][0] < now:
                now = completions[0][0]
            if coming and coming[0][0] < now:
                now = coming[0][0]
            if told and told[0][0] < now:
                now = told[0][0]
            if now > end:
                break
            events = self._events(now)
            instructions = kernel.handle(now, events)
            for instruction in instructions:
                if in_parts:
                    self._carry_out(now, instruction)
                else:
                    job = instruction.job  # type: ignore[attr-defined]  # all of them are starts
                    heappush(completions, (now + cost_us[type(job)](job), job.task.place, job))
            if journal is not None:
                journal.write(now, events, instructions)
            if progress is not None:
                instants += 1
                if instants % _INSTANTS_PER_REPORT == 0:
                    progress(now)

    def _events(self, now: int) -> list[Event]:
        """All events of this instant: ends of jobs, in definition order, then files."""
        events: list[Event] = []
        completions = self._completions
        if completions and completions[0][0] == now:
            ended, busy_us, since = self._ended, self.busy_us, self._since
            while completions and completions[0][0] == now:
                job = heappop(completions)[2]
                if since and job in since:
                    events.append(self._stopped(now, job))
                    continue
                busy_us[job.track] = busy_us.get(job.track, 0) + now - job.start
                events.append(ended[type(job)](now, job))
        coming = self._coming
        while coming and coming[0][0] == now:
            _, feed, file = heappop(coming)
            events.append(FileArrived(feed, file))
            self._expect_file(feed)
        while self._told and self._told[0][0] == now:
            told = heappop(self._told)[2]
            event = told if isinstance(told, Event) else told(now)
            if event is not None:
                events.append(event)
        return events

    def _carry_out(self, now: int, instruction: Instruction) -> None:
        """Carries out an instruction if jobs can be paused or cancelled, or kinds have own instructions.

        A paused job runs on to the end of its part; a cancelled job ends at once.
        """
        if type(instruction) is Start:
            job = instruction.job
            place = job.task.place
            if job in self._since:
                self._since[job] = (now, self._since[job][1])
                self._kinds[type(job)].goes_on(now, job)
                heappush(self._completions, (now + self._left_us.pop(job), place, job))
            else:
                heappush(self._completions, (now + self._cost_us[type(job)](job), place, job))
        elif type(instruction) is Cancel:
            self._ends_now(now, instruction.job)
        elif type(instruction) is Pause:
            self._put_aside(now, instruction.job)
        else:
            self._listeners[type(instruction)](now, instruction)

    def _ends_now(self, now: int, job: Job) -> None:
        completions = self._completions
        completions[:] = [
            (now, place, other) if other is job else (at, place, other) for at, place, other in completions
        ]
        heapify(completions)

    def _put_aside(self, now: int, job: Job) -> None:
        place = job.task.place
        since, ran_us = self._since.get(job, (job.start, 0))
        stops_at = since + self._kinds[type(job)].part_ends_us(job, ran_us + now - since) - ran_us
        (ends_at,) = (at for at, _, other in self._completions if other is job)
        if stops_at < ends_at:
            self._completions.remove((ends_at, place, job))
            heapify(self._completions)
            heappush(self._completions, (stops_at, place, job))
            self._since[job] = (since, ran_us)
            self._left_us[job] = ends_at - stops_at

    def _stopped(self, now: int, job: Job) -> Event:
        """A job stops that was paused before, or is paused now."""
        since, ran_us = self._since[job]
        self.busy_us[job.track] = self.busy_us.get(job.track, 0) + now - since
        if job in self._left_us:
            self._since[job] = (now, ran_us + now - since)
            self._kinds[type(job)].paused(now, job)
            return JobPaused(job)
        del self._since[job]
        return self._ended[type(job)](now, job)

    def _expect_file(self, feed: str) -> None:
        coming = self._files[feed].next()
        if coming is not None:
            heappush(self._coming, (coming[0], feed, coming[1]))
