"""The simulated driver: costs from the cost model, time by jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar

from freshline.kernel.events import Event, Record
from freshline.kernel.job import Job
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.tables.events import Arrived, DataFile

# How many instants pass between two reports of progress.
_INSTANTS_PER_REPORT = 20_000

J = TypeVar("J", bound=Job, contravariant=True)


class Kind(Protocol[J]):
    """What a simulation has to know of the jobs of one kind."""

    def begins(self, kernel: Kernel) -> None:
        """The kernel runs from now on."""

    def cost_us(self, job: J) -> int:
        """How long the job takes that starts now."""

    def ended(self, now: int, job: J) -> Event:
        """The job ends now: looks at how all is before the kernel hears of it, and says what it hears."""

    def crashed(self, now: int) -> None:
        """The kernel is gone, and all jobs that ran."""

    def over(self, end: int, kernel: Kernel) -> None:
        """The run is over."""


class Files(Protocol):
    """The files of one feed, one after the other: when each arrives; None after the last."""

    def next(self) -> tuple[int, DataFile] | None: ...


class Driver:
    """Runs a kernel in simulated time. `kinds` are by type of job, `files` by feed."""

    def __init__(
        self,
        kernel: Kernel,
        kinds: Mapping[type[Job], Kind[Any]],
        files: Mapping[str, Files],
        journal: Journal | None = None,
    ) -> None:
        self.kernel = kernel
        self.busy_us: dict[int, int] = {}  # by track
        self._kinds = kinds
        self._cost_us = {job: kind.cost_us for job, kind in kinds.items()}
        self._ended = {job: kind.ended for job, kind in kinds.items()}
        self._journal = journal
        self._completions: list[tuple[int, int, Job]] = []
        self._files = files
        self._coming: list[tuple[int, str, DataFile]] = []
        self._told: list[tuple[int, int, Event]] = []
        self._tellings = 0
        for feed in files:
            self._expect_file(feed)
        for kind in kinds.values():
            kind.begins(kernel)

    def tell(self, at: int, event: Event) -> None:
        """Something else happens at an instant that is yet to come."""
        self._tellings += 1
        heappush(self._told, (at, self._tellings, event))

    @property
    def next_at(self) -> int:
        """The next instant at which something happens."""
        instants = [self.kernel.wake_at]
        instants += [heap[0][0] for heap in (self._completions, self._coming, self._told) if heap]
        return min(instants)

    def step(self) -> None:
        """Lets happen what happens next, at one instant."""
        self.advance(self.next_at)

    def run(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulates up to and including the instant `end`, and looks at how everything is then."""
        self.advance(end, progress)
        self._count_running(end)
        for kind in self._kinds.values():
            kind.over(end, self.kernel)

    def stop(self, now: int, until: int) -> list[tuple[str, DataFile]]:
        """The runner is gone, before anything happens at this instant: its jobs are lost.

        Returns the files that come until it is back, by feed. What else was to happen meanwhile happens then.
        """
        self._count_running(now)
        self._completions.clear()
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

    def resume(self, now: int, kernel: Kernel, events: Sequence[Event], found: Record) -> None:
        """Another kernel runs from now on, and is told these events first. `found` is what it was made of."""
        self.kernel = kernel
        for kind in self._kinds.values():
            kind.begins(kernel)
        if self._journal is not None:
            self._journal.restarted(now, found)
        for event in events:
            self.tell(now, event)

    def _count_running(self, now: int) -> None:
        for pool in self.kernel.pools:
            for track, job in pool.running.items():
                self.busy_us[track] = self.busy_us.get(track, 0) + now - job.start

    def advance(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulates up to and including the instant `end`."""
        kernel = self.kernel
        completions = self._completions
        coming = self._coming
        told = self._told
        cost_us = self._cost_us
        journal = self._journal
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
                job = instruction.job
                heappush(completions, (now + cost_us[type(job)](job), job.task.place, job))
            if journal is not None:
                journal.write(now, events, instructions)
            if progress is not None:
                instants += 1
                if instants % _INSTANTS_PER_REPORT == 0:
                    progress(now)

    def _events(self, now: int) -> list[Event]:
        """All that happens at this instant: jobs that end, in definition order, then files."""
        events: list[Event] = []
        completions = self._completions
        if completions and completions[0][0] == now:
            ended, busy_us = self._ended, self.busy_us
            while completions and completions[0][0] == now:
                job = heappop(completions)[2]
                busy_us[job.track] = busy_us.get(job.track, 0) + now - job.start
                events.append(ended[type(job)](now, job))
        coming = self._coming
        while coming and coming[0][0] == now:
            _, feed, file = heappop(coming)
            events.append(Arrived(feed, file))
            self._expect_file(feed)
        while self._told and self._told[0][0] == now:
            events.append(heappop(self._told)[2])
        return events

    def _expect_file(self, feed: str) -> None:
        coming = self._files[feed].next()
        if coming is not None:
            heappush(self._coming, (coming[0], feed, coming[1]))
