"""A piece of work that occupies a track."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freshline.kernel.core.task import Task


class Job:
    """A job of a task, from its start on. Each kind of work has its own subclass."""

    __slots__ = ("deadline", "number", "release", "start", "task", "track")

    task: Task

    def __init__(self, task: Task, number: int, release: int, deadline: int, start: int, track: int) -> None:
        self.task = task
        self.number = number  # 1 for the task's first
        self.release = release
        self.deadline = deadline
        self.start = start
        self.track = track

    def __lt__(self, other: Job) -> bool:
        return self.number < other.number  # of jobs of one task that end at one instant

    def record(self) -> dict[str, Any]:
        """Its start as a journal records it."""
        return {
            "start": self.task.name,
            "job": self.number,
            "track": self.track,
            "release": self.release,
            "deadline": self.deadline,
        }

    def __repr__(self) -> str:
        return f"Job({self.task.name} #{self.number}, track {self.track})"
