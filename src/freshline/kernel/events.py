"""What happens outside and is told to the kernel, and what the kernel answers."""

from __future__ import annotations

from typing import NamedTuple

from freshline.kernel.job import Job


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


class Arrived:
    """A data file can be read."""

    __slots__ = ("feed", "file")
    priority = 1

    def __init__(self, feed: str, file: DataFile) -> None:
        self.feed = feed
        self.file = file

    def __repr__(self) -> str:
        return f"Arrived({self.feed}, {self.file!r})"


Event = Finished | Arrived


class Start:
    """Run this job on its track, now."""

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def __repr__(self) -> str:
        return f"Start({self.job!r})"


Instruction = Start
