"""Every job of a simulated run, for pictures."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update
from freshline.pictures.bars import Bar


class JobRecords:
    """The finished jobs, 40 bytes each, and those that run at the end."""

    def __init__(self) -> None:
        self._names: list[str] = []  # of tables; the arrays refer to them by number
        self._numbers: dict[str, int] = {}
        self._tables = array("q")
        self._tracks = array("q")
        self._starts = array("q")
        self._ends = array("q")
        self._freshness = array("q")  # reached
        self._running: list[Bar] = []

    def __len__(self) -> int:
        return len(self._tables)

    def finished(self, now: int, job: Update, freshness: int) -> None:
        """A job has ended, and its table has that freshness."""
        name = job.task.name
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        self._tables.append(number)
        self._tracks.append(job.track)
        self._starts.append(job.start)
        self._ends.append(now)
        self._freshness.append(freshness)

    def ended(self, kernel: Kernel, end: int) -> None:
        """The run is over."""
        jobs = [task.job for task in tables_of(kernel) if task.job is not None]
        self._running = [Bar(job.task.name, job.track, job.start, end) for job in jobs]

    def completions(self) -> Iterator[tuple[int, str, int]]:
        """(instant, table, freshness) of every finished update, in this order."""
        for at, number, freshness in zip(self._ends, self._tables, self._freshness, strict=True):
            yield at, self._names[number], freshness

    def staleness(self, table: str, end: int) -> Iterator[tuple[int, int]]:
        """A table's (instant, staleness): it grows until a completion, and then falls at once."""
        yield 0, 0
        reached = 0
        for at, name, freshness in self.completions():
            if name == table:
                yield at, at - reached
                yield at, at - freshness
                reached = freshness
        yield end, end - reached

    def bars(self) -> Iterator[Bar]:
        """All jobs on their tracks."""
        for number, track, start, end in zip(
            self._tables, self._tracks, self._starts, self._ends, strict=True
        ):
            yield Bar(self._names[number], track, start, end)
        yield from self._running
