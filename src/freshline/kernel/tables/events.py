"""What happens to tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.tables.batches import BatchCost
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class DataFile(NamedTuple):
    """A file of a feed. Files sort by timestamp, then by name."""

    timestamp: int
    name: str | int
    rows: int = 0  # how many records it has, where that is known: a batch is chosen by them


class UpdateFinished(Event):
    """An update has ended and its table now is as fresh as `freshness` says."""

    __slots__ = ("freshness", "job")

    def __init__(self, job: Update, freshness: int) -> None:
        self.job = job
        self.freshness = freshness

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.finished(self.job, self.freshness, now)

    def record(self) -> Record:
        return {"finished": self.job.task.name, "job": self.job.number, "freshness": self.freshness}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        job = kernel.running(record["finished"], record["job"])
        assert isinstance(job, Update), f"{job!r} is not of a table"
        return cls(job, record["freshness"])

    def __repr__(self) -> str:
        return f"Finished({self.job!r}, freshness={self.freshness})"


class FileArrived(Event):
    """A data file can be read: by all tables that load the feed, or by some (the others have it already)."""

    __slots__ = ("feed", "file", "tables")
    priority: ClassVar[int] = 1
    # A file that comes at the instant at which a job ends is there then (paper 001, (2)).
    arrives: ClassVar[bool] = True

    def __init__(self, feed: str, file: DataFile, tables: frozenset[str] | None = None) -> None:
        self.feed = feed
        self.file = file
        self.tables = tables

    def arrive(self, kernel: Kernel) -> None:
        if self.file.timestamp > 0:  # or it holds nothing newer than the empty table (paper 001, (1))
            for reader in kernel.readers.get(self.feed, ()):
                if self.tables is None or reader.name in self.tables:
                    reader.arrived(self.file)

    def take(self, kernel: Kernel, now: int) -> None:
        for reader in kernel.readers.get(self.feed, ()):
            if self.tables is None or reader.name in self.tables:
                reader.source_advanced(now)

    def record(self) -> Record:
        record: Record = {"arrived": self.feed, "timestamp": self.file.timestamp, "file": self.file.name}
        if self.file.rows:
            record["rows"] = self.file.rows
        if self.tables is not None:
            record["tables"] = sorted(self.tables)
        return record

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        tables = record.get("tables")
        file = DataFile(record["timestamp"], record["file"], record.get("rows", 0))
        return cls(record["arrived"], file, None if tables is None else frozenset(tables))

    def __repr__(self) -> str:
        return f"Arrived({self.feed}, {self.file!r})"


class BatchCostsLearned(Event):
    """What jobs of several files cost has become known, or is known better than before."""

    __slots__ = ("costs",)
    priority: ClassVar[int] = 2

    def __init__(self, costs: Mapping[str, BatchCost]) -> None:
        self.costs = costs  # by table

    def take(self, kernel: Kernel, now: int) -> None:
        for task in tables_of(kernel):
            task.batch_cost = self.costs.get(task.name, task.batch_cost)

    def record(self) -> Record:
        return {"batches": {table: cost._asdict() for table, cost in self.costs.items()}}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls({table: BatchCost(**cost) for table, cost in record["batches"].items()})

    def __repr__(self) -> str:
        return f"Batches({', '.join(self.costs)})"
