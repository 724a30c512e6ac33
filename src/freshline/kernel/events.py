"""What happens outside and is told to the kernel, and what the kernel answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from freshline.kernel.job import Job

if TYPE_CHECKING:
    from freshline.kernel.recovery import Terms


class DataFile(NamedTuple):
    """A file of a feed. Files sort by timestamp, then by name."""

    timestamp: int
    name: str | int


class Finished:
    """A job has ended and its table now is as fresh as `freshness` says."""

    __slots__ = ("freshness", "job")
    priority = 0

    def __init__(self, job: Job, freshness: int) -> None:
        self.job = job
        self.freshness = freshness

    def __repr__(self) -> str:
        return f"Finished({self.job!r}, freshness={self.freshness})"


class Failed:
    """A job has ended without effect. Its files are to be loaded again, not before `retry_at`."""

    __slots__ = ("job", "retry_at")
    priority = 0

    def __init__(self, job: Job, retry_at: int) -> None:
        self.job = job
        self.retry_at = retry_at

    def __repr__(self) -> str:
        return f"Failed({self.job!r}, retry_at={self.retry_at})"


class Arrived:
    """A data file can be read: by all tables that load the feed, or by some (the others have it already)."""

    __slots__ = ("feed", "file", "tables")
    priority = 1

    def __init__(self, feed: str, file: DataFile, tables: frozenset[str] | None = None) -> None:
        self.feed = feed
        self.file = file
        self.tables = tables

    def __repr__(self) -> str:
        return f"Arrived({self.feed}, {self.file!r})"


class LearnedCost(NamedTuple):
    """What is known of a table from now on."""

    worst_case_us: int  # what an update costs at most
    startup_us: int  # the start-up of it
    provisioned_us: int | None  # the cost that its share is made for, where its policy gives it one
    terms: Terms | None  # on which it recovers; None where it does not, or did before


class Learned:
    """Costs have become known, and maybe bounds with them."""

    __slots__ = ("tables",)
    priority = 2

    def __init__(self, tables: Mapping[str, LearnedCost]) -> None:
        self.tables = tables

    def __repr__(self) -> str:
        return f"Learned({', '.join(self.tables)})"


Event = Finished | Failed | Arrived | Learned


class Start:
    """Run this job on its track, now."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def __repr__(self) -> str:
        return f"Start({self.job!r})"


Instruction = Start
