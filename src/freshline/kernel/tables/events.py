"""Events of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from freshline.kernel.core.events import Event, JobEvent, Record
from freshline.kernel.tables.batches import BatchCost
from freshline.kernel.tables.drain import DrainBegun
from freshline.kernel.tables.membership import TableAdded, TableRemoved
from freshline.kernel.tables.remote_table import RemoteAdvanced
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class DataFile(NamedTuple):
    """A file of a feed. Files sort by timestamp, then by name."""

    timestamp: int
    name: str | int
    rows: int = 0  # the number of its records if known; batches are chosen by it


@dataclass(slots=True, eq=False)
class UpdateFinished(JobEvent):
    """An update has ended, and its table has that freshness now."""

    word, of = "finished", Update
    keys = (("freshness", "freshness"),)
    job: Update
    freshness: int

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.finished(self.job, self.freshness, now)


@dataclass(slots=True, eq=False)
class FileArrived(Event):
    """A data file can be read: by all tables that load the feed, or by some (the others have it already)."""

    word = "arrived"
    priority = 1
    # A file that comes at the instant at which a job ends counts for that end (paper 001, (2)).
    arrives = True
    feed: str
    file: DataFile
    tables: frozenset[str] | None = None

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
        record: Record = {self.word: self.feed, "timestamp": self.file.timestamp, "file": self.file.name}
        if self.file.rows:
            record["rows"] = self.file.rows
        if self.tables is not None:
            record["tables"] = sorted(self.tables)
        return record

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        tables = record.get("tables")
        file = DataFile(record["timestamp"], record["file"], record.get("rows", 0))
        return cls(record[cls.word], file, None if tables is None else frozenset(tables))


@dataclass(slots=True, eq=False)
class BatchCostsLearned(Event):
    """The cost of jobs of several files has become known, or is known better."""

    word = "batches"
    priority = 2
    costs: Mapping[str, BatchCost]  # by table

    def take(self, kernel: Kernel, now: int) -> None:
        for task in tables_of(kernel):
            task.batch_cost = self.costs.get(task.name, task.batch_cost)

    def record(self) -> Record:
        return {self.word: {table: cost._asdict() for table, cost in self.costs.items()}}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls({table: BatchCost(**cost) for table, cost in record[cls.word].items()})


EVENTS: Final[tuple[type[Event], ...]] = (
    UpdateFinished,
    FileArrived,
    BatchCostsLearned,
    TableAdded,
    TableRemoved,
    DrainBegun,
    RemoteAdvanced,
)
