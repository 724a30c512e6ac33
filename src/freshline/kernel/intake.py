"""What a table can load at an instant: three kinds of source, one question each."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from freshline.kernel.events import DataFile
    from freshline.kernel.task import Task


class Intake(Protocol):
    """Where a table's new data comes from."""

    def trailing_edge(self, now: int) -> int:
        """TE: up to which timestamp could be loaded now."""

    def stale(self, freshness: int) -> bool:
        """Whether there is anything to load (not FRESH, paper 001 (2))."""

    def backlogged(self, freshness: int, period_us: int) -> bool:
        """Whether a whole update is waiting, so that an idle track may start it before its release."""

    def claim(self, task: Task, now: int, whole: bool) -> tuple[int, tuple[DataFile, ...]]:
        """What a job starting now loads: the new freshness and the files. `whole`: all there is."""

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        """A job failed: what it claimed is there again."""


class ContinuousIntake:
    """Every record up to now can be loaded at any time (paper 004, Definition 3)."""

    __slots__ = ()

    def trailing_edge(self, now: int) -> int:
        return now

    def stale(self, freshness: int) -> bool:
        return True

    def backlogged(self, freshness: int, period_us: int) -> bool:
        return False

    def claim(self, task: Task, now: int, whole: bool) -> tuple[int, tuple[DataFile, ...]]:
        reach = task.freshness + task.period_us
        return (now if whole or now < reach else reach), ()

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        pass


class FileIntake:
    """Data files that arrived and are not loaded (paper 001, Definitions 3 and 6)."""

    __slots__ = ("newest", "pending")

    def __init__(self) -> None:
        self.pending: list[DataFile] = []  # by timestamp
        self.newest = 0

    def add(self, file: DataFile) -> None:
        """A file has arrived. Files come almost sorted, so inserting is cheap."""
        insort(self.pending, file)
        self.newest = max(self.newest, file.timestamp)

    def trailing_edge(self, now: int) -> int:
        return self.newest

    def stale(self, freshness: int) -> bool:
        return bool(self.pending)

    def backlogged(self, freshness: int, period_us: int) -> bool:
        return bool(self.pending)

    def claim(self, task: Task, now: int, whole: bool) -> tuple[int, tuple[DataFile, ...]]:
        count = len(self.pending) if whole else 1
        files = tuple(self.pending[:count])
        del self.pending[:count]
        return max(task.freshness, files[-1].timestamp), files

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        self.pending = sorted([*files, *self.pending])


class DerivedIntake:
    """Other tables, as far as all of them reach (trailing-edge consistency: paper 004, Definition 3).

    With `align_us` only whole windows [k·align, (k+1)·align) are loaded, so freshness stands at a window's
    edge minus 1 µs and an aggregate never emits half a window.
    """

    __slots__ = ("align_us", "sources")

    def __init__(self, sources: Sequence[Task], align_us: int | None = None) -> None:
        assert sources, "a derived table without sources"
        self.sources = tuple(sources)
        self.align_us = align_us

    def trailing_edge(self, now: int) -> int:
        edge = self.sources[0].freshness
        for source in self.sources:
            if source.freshness < edge:
                edge = source.freshness
        return edge if self.align_us is None else self._aligned(edge)

    def stale(self, freshness: int) -> bool:
        return self.trailing_edge(0) > freshness

    def backlogged(self, freshness: int, period_us: int) -> bool:
        # Only a full-length update is worth a start ahead of time: shorter ones would spend the start-up
        # cost on every advance of a source, and make the declared period meaningless.
        return self.trailing_edge(0) >= self._reach(freshness, period_us)

    def claim(self, task: Task, now: int, whole: bool) -> tuple[int, tuple[DataFile, ...]]:
        edge = self.trailing_edge(now)
        reach = self._reach(task.freshness, task.period_us)
        loaded_to = edge if whole or task.empty or edge < reach else reach
        # Where the windows were changed between two runs, the last one's edge may lie below what is loaded.
        return max(task.freshness, loaded_to), ()

    def give_back(self, files: tuple[DataFile, ...]) -> None:
        pass

    def _reach(self, freshness: int, period_us: int) -> int:
        """How far one update may go: a period, rounded up to windows, or the table would fall behind."""
        if self.align_us is None:
            return freshness + period_us
        return self._aligned(freshness + -(-period_us // self.align_us) * self.align_us)

    def _aligned(self, instant: int) -> int:
        assert self.align_us is not None
        return max(0, (instant + 1) // self.align_us * self.align_us - 1)
