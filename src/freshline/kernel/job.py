"""One update of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshline.kernel.events import DataFile
    from freshline.kernel.task import Task


class Job:
    """A started update: it loads (`loaded_from`, `loaded_to`] into its table, on one track."""

    __slots__ = (
        "deadline",
        "files",
        "jump_to",
        "loaded_from",
        "loaded_to",
        "number",
        "release",
        "start",
        "task",
        "track",
        "updates",
    )

    def __init__(
        self,
        task: Task,
        number: int,
        release: int,
        deadline: int,
        start: int,
        track: int,
        loaded_from: int,
        loaded_to: int,
        files: tuple[DataFile, ...],
        updates: int = 1,
    ) -> None:
        self.task = task
        self.number = number  # 1 for the table's first
        self.release = release
        self.deadline = deadline
        self.start = start
        self.track = track
        self.loaded_from = loaded_from  # the table's freshness F
        self.loaded_to = loaded_to  # the new freshness NF
        # How far beyond NF its freshness may go at most, where no source has a row; NF where it may not.
        self.jump_to = loaded_to
        self.files = files  # the data files it loads, oldest first; none for a derived or continuous table
        self.updates = updates  # how many it does at once

    @property
    def length_us(self) -> int:
        """The update length L (paper 004, Definition 4; paper 001, Definition 8)."""
        return self.loaded_to - self.loaded_from

    @property
    def worst_case_us(self) -> int:
        """What it costs at most; several updates share the start-up."""
        return self.task.worst_case_of(self.updates)

    def __repr__(self) -> str:
        loaded = f"({self.loaded_from}, {self.loaded_to}]"
        return f"Job({self.task.name} #{self.number}, {loaded}, track {self.track})"
