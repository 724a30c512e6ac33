"""What an update did, once it is committed."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.storage.delta.files import ConsumedFile, LiveFile


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What an update did."""

    freshness: int
    rows: int
    rows_late: int
    version: int  # of the Delta table
    consumed: tuple[ConsumedFile, ...]
    rows_shed: int = 0  # records of its files that gave way to others of their window
    computed: bool = True  # by Spark; what has nothing to load only commits how far it is
    files: tuple[LiveFile, ...] = ()  # that the commit added
    rows_in: int | None = None  # of a step: what it read, by which it costs

    @property
    def discarded(self) -> int:
        """How many of its files changed too little to be loaded."""
        return sum(file.discarded for file in self.consumed)
