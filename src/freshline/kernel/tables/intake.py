"""What a table can load at an instant, for three kinds of source."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING

from freshline.base.align import last_edge
from freshline.kernel.core.task import IDLE

if TYPE_CHECKING:
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.source import Source
    from freshline.kernel.tables.task import TableTask
    from freshline.kernel.tables.update import Update


class Intake:
    """Where a table's new data comes from."""

    __slots__ = ()
    sources: tuple[Source, ...] = ()  # the tables that it is computed from; none for a base table

    def trailing_edge(self, now: int) -> int:
        """TE: the timestamp up to which data can be loaded now."""
        raise NotImplementedError

    def stale(self, freshness: int) -> bool:
        """Whether there is anything to load (not FRESH, paper 001 (2))."""
        raise NotImplementedError

    def lacks(self, freshness: int, since: int) -> bool:
        """Whether there is anything to load; for continuous sources, of what there was at `since`."""
        return self.stale(freshness)

    def backlogged(self, freshness: int, period_us: int) -> bool:
        """Whether a whole update is waiting, so that an idle track may start it before its release."""
        raise NotImplementedError

    def claim(self, task: TableTask, now: int, batch: int | None) -> tuple[int, int, tuple[DataFile, ...]]:
        """A job starting now: its new freshness, how far it may jump over time without rows, its files.

        `batch` is the number of updates at once; None: all there is.
        """
        raise NotImplementedError

    def caught_up(self, freshness: int, period_us: int, job: Update) -> bool:
        """Whether the table has nothing left to catch up with after this job."""
        raise NotImplementedError

    def jumped(self, job: Update, next_row: int | None) -> int:
        """The freshness that a job reaches if `next_row` is the sources' first row after NF; None: no row."""
        return job.loaded_to

    def add(self, file: DataFile) -> None:
        """A file has arrived."""
        raise AssertionError(f"{file!r} came to a table that loads no files")

    def seen(self, timestamp: int) -> None:
        """Notes that data up to there has come, before any event."""

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        """Takes back the files of a failed job."""

    def files(self, job: Update | None) -> int:
        """The backlog |BL|: the arrived files that are not loaded, including those being loaded."""
        return 0

    def waiting_files(self) -> Sequence[DataFile]:
        """The files that a job may claim, oldest first."""
        return ()

    def unloaded(self, job: Update | None) -> tuple[DataFile, ...]:
        """The files of the backlog, oldest first."""
        return ()

    def validate(self, task: TableTask) -> None:
        """Raises AssertionError if its state and the task's are inconsistent."""


class ContinuousIntake(Intake):
    """Every record up to now can be loaded at any time (paper 004, Definition 3)."""

    __slots__ = ()

    def trailing_edge(self, now: int) -> int:
        return now

    def stale(self, freshness: int) -> bool:
        return True

    def lacks(self, freshness: int, since: int) -> bool:
        return freshness < since

    def backlogged(self, freshness: int, period_us: int) -> bool:
        return False

    def claim(self, task: TableTask, now: int, batch: int | None) -> tuple[int, int, tuple[DataFile, ...]]:
        if batch is not None:
            reach = task.freshness + batch * task.period_us
            if reach < now:
                return reach, reach, ()
        return now, now, ()

    def caught_up(self, freshness: int, period_us: int, job: Update) -> bool:
        return job.length_us < period_us


class FileIntake(Intake):
    """Data files that arrived and are not loaded (paper 001, Definitions 3 and 6)."""

    __slots__ = ("landed", "newest", "pending")

    def __init__(self) -> None:
        self.pending: list[DataFile] = []  # by timestamp
        self.newest = 0
        self.landed = 0  # the number of all arrived files

    def add(self, file: DataFile) -> None:
        insort(self.pending, file)  # files come almost sorted, so that is cheap
        self.newest = max(self.newest, file.timestamp)
        self.landed += 1

    def seen(self, timestamp: int) -> None:
        self.newest = max(self.newest, timestamp)

    def trailing_edge(self, now: int) -> int:
        return self.newest

    def stale(self, freshness: int) -> bool:
        return bool(self.pending)

    def backlogged(self, freshness: int, period_us: int) -> bool:
        return bool(self.pending)

    def claim(self, task: TableTask, now: int, batch: int | None) -> tuple[int, int, tuple[DataFile, ...]]:
        files = tuple(self.pending[:batch])
        del self.pending[:batch]
        loaded_to = max(task.freshness, files[-1].timestamp)
        return loaded_to, loaded_to, files

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        self.pending = sorted([*files, *self.pending])

    def caught_up(self, freshness: int, period_us: int, job: Update) -> bool:
        return not self.pending

    def files(self, job: Update | None) -> int:
        return len(self.pending) + (0 if job is None else len(job.files))

    def waiting_files(self) -> Sequence[DataFile]:
        return self.pending

    def unloaded(self, job: Update | None) -> tuple[DataFile, ...]:
        return (*(() if job is None else job.files), *self.pending)

    def validate(self, task: TableTask) -> None:
        assert self.pending == sorted(self.pending)
        if task.state == IDLE:
            assert not self.pending, f"{task!r} has files and no job"


class DerivedIntake(Intake):
    """Other tables, up to the least fresh of them (trailing-edge consistency: paper 004, Definition 3).

    With `align_us` only whole windows [k·align, (k+1)·align) are loaded, so freshness is a window's edge
    minus 1 µs and an aggregate never emits half a window.
    """

    __slots__ = ("align_us", "sources")

    def __init__(self, sources: Sequence[Source], align_us: int | None = None) -> None:
        assert sources, "a derived table without sources"
        self.sources = tuple(sources)
        self.align_us = align_us

    def trailing_edge(self, now: int) -> int:
        edge = self.sources[0].freshness
        for source in self.sources:
            if source.freshness < edge:
                edge = source.freshness
        return edge if self.align_us is None else last_edge(edge, self.align_us)

    def stale(self, freshness: int) -> bool:
        return self.trailing_edge(0) > freshness

    def backlogged(self, freshness: int, period_us: int) -> bool:
        # Only a full-length update is worth an early start: shorter ones would pay the start-up cost at every
        # advance of a source, and make the declared period meaningless.
        return self.trailing_edge(0) >= self.reach(freshness, period_us)

    def claim(self, task: TableTask, now: int, batch: int | None) -> tuple[int, int, tuple[DataFile, ...]]:
        freshness, edge = task.freshness, self.trailing_edge(now)
        if edge < freshness:
            edge = freshness  # windows changed between two runs, and their last edge lies below
        if batch is not None and not task.empty:
            reach = self.reach(freshness, batch * task.period_us)
            if reach < edge:
                return reach, edge, ()
        return edge, edge, ()

    def jumped(self, job: Update, next_row: int | None) -> int:
        """Just before that row, on a window's edge; but NF if the next update would load the row anyway.

        So a row that near need not be the very next one.
        """
        if next_row is None or next_row > job.jump_to:
            return job.jump_to
        if next_row - job.loaded_to <= job.task.period_us:
            return job.loaded_to
        return max(job.loaded_to, last_edge(next_row - 1, self.align_us))

    def caught_up(self, freshness: int, period_us: int, job: Update) -> bool:
        # An update shorter than allowed has taken all there was at its start, and so has one that jumped as
        # far as allowed. Paper 001's Rule RN waits for an update during which no source moves, which might
        # take for ever.
        return (
            not self.stale(freshness)
            or job.loaded_to < self.reach(job.loaded_from, period_us)
            or job.loaded_to < job.jump_to <= freshness
        )

    def reach(self, freshness: int, period_us: int) -> int:
        """How far one update may go: a period, rounded up to windows, or the table would fall behind."""
        if self.align_us is None:
            return freshness + period_us
        return last_edge(freshness + -(-period_us // self.align_us) * self.align_us, self.align_us)
