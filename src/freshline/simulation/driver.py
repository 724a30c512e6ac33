"""The simulated driver: costs from the cost model, time by jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, Protocol

from freshline.kernel.events import Event
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.simulation.gaps import next_row
from freshline.simulation.observation import Observation
from freshline.simulation.spans import Spans
from freshline.tables.events import Arrived, DataFile, Finished
from freshline.tables.update import Update

# How many instants pass between two reports of progress.
_INSTANTS_PER_REPORT = 20_000


class Costs(Protocol):
    """What the jobs of one table cost, one after the other."""

    def draw_us(self, length_us: int) -> int: ...


class Files(Protocol):
    """The files of one feed, one after the other: when each arrives; None after the last."""

    def next(self) -> tuple[int, DataFile] | None: ...


class Witness(Protocol):
    """Someone who is told of every job that ends."""

    def finished(self, now: int, job: Update, freshness: int) -> None: ...


class Driver:
    """Runs a kernel in simulated time. `costs` are by table, `files` by feed.

    `gaps` says by table when its sources have no rows; without it they always have.
    """

    def __init__(
        self,
        kernel: Kernel,
        costs: Mapping[str, Costs],
        files: Mapping[str, Files],
        witness: Witness | None = None,
        journal: Journal | None = None,
        gaps: Mapping[str, Spans] | None = None,
    ) -> None:
        self.kernel = kernel
        self.observation = Observation()
        self._draw = {name: cost.draw_us for name, cost in costs.items()}
        self._witness = witness
        self._journal = journal
        self._gaps = gaps
        self._completions: list[tuple[int, int, Update]] = []
        self._files = files
        self._coming: list[tuple[int, str, DataFile]] = []
        self._told: list[tuple[int, int, Event]] = []
        self._tellings = 0
        for feed in files:
            self._expect_file(feed)

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

    def run(self, end: int, progress: Callable[[int], None] | None = None) -> Observation:
        """Simulates up to and including the instant `end`, and looks at how everything is then."""
        self.advance(end, progress)
        self.observation.ended(end, self.kernel)
        return self.observation

    def advance(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Simulates up to and including the instant `end`."""
        kernel = self.kernel
        completions = self._completions
        coming = self._coming
        told = self._told
        draw = self._draw
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
                job: Any = instruction.job  # an update: no other job is given a cost
                task = job.task
                end_at = now + draw[task.name](job.loaded_to - job.loaded_from)
                heappush(completions, (end_at, task.place, job))
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
            jobs = [heappop(completions)[2]]
            while completions and completions[0][0] == now:
                jobs.append(heappop(completions)[2])
            self.observation.finished(now, jobs)
            if self._gaps is None:
                events = [Finished(job, job.loaded_to) for job in jobs]
            else:
                events = [Finished(job, self._reached(job)) for job in jobs]
            if self._witness is not None:
                for job in jobs:
                    self._witness.finished(now, job, self._reached(job))
        coming = self._coming
        while coming and coming[0][0] == now:
            _, feed, file = heappop(coming)
            events.append(Arrived(feed, file))
            self._expect_file(feed)
        while self._told and self._told[0][0] == now:
            events.append(heappop(self._told)[2])
        return events

    def _reached(self, job: Update) -> int:
        """How fresh a job makes its table, which jumps over time in which its sources have no rows."""
        task = job.task
        if self._gaps is None or job.jump_to == job.loaded_to:
            return job.loaded_to
        return task.intake.jumped(job, next_row(self._gaps[task.name], job.loaded_to))

    def _expect_file(self, feed: str) -> None:
        coming = self._files[feed].next()
        if coming is not None:
            heappush(self._coming, (coming[0], feed, coming[1]))
