"""The result of a committed update."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.storage.delta.files import ConsumedFile, LiveFile


@dataclass(frozen=True, slots=True)
class LoadResult:
    freshness: int
    rows: int
    rows_late: int
    version: int  # of the Delta table
    consumed: tuple[ConsumedFile, ...]
    rows_shed: int = 0  # records that `shed` left out
    computed: bool = True  # by Spark; without anything to load, only the freshness is committed
    files: tuple[LiveFile, ...] = ()  # added by the commit
    rows_in: int | None = None  # of a step: the rows read, on which its cost depends

    @property
    def discarded(self) -> int:
        """The number of its files that changed too little to be loaded."""
        return sum(file.discarded for file in self.consumed)
