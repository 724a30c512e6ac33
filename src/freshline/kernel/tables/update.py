"""One update of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from freshline.kernel.core.job import Job

if TYPE_CHECKING:
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.task import TableTask


class Update(Job):
    """A table's job: loads (`loaded_from`, `loaded_to`] into it."""

    __slots__ = ("files", "jump_to", "loaded_from", "loaded_to", "updates")

    task: TableTask

    def __init__(
        self,
        task: TableTask,
        number: int,
        release: int,
        deadline: int,
        start: int,
        track: int,
        loaded_from: int,
        loaded_to: int,
        files: tuple[DataFile, ...],
    ) -> None:
        # Not by super().__init__: the simulator makes half of its objects here.
        self.task = task
        self.number = number
        self.release = release
        self.deadline = deadline
        self.start = start
        self.track = track
        self.loaded_from = loaded_from  # the table's freshness F
        self.loaded_to = loaded_to  # the new freshness NF
        # How far beyond NF its freshness may go if no source has a row; NF if it may not.
        self.jump_to = loaded_to
        self.files = files  # its data files, oldest first; none for a derived or continuous table
        self.updates = 1  # the number of updates at once; its task may set more

    @property
    def length_us(self) -> int:
        """The update length L (paper 004, Definition 4; paper 001, Definition 8)."""
        return self.loaded_to - self.loaded_from

    @property
    def worst_case_us(self) -> int:
        """Its worst-case cost, as the bounds count it; several updates share the start-up."""
        if self.updates > 1 and self.task.allowed_us:
            return self.task.allowed_us
        return self.task.worst_case_of(self.updates)

    def record(self) -> dict[str, Any]:
        record = {**super().record(), "from": self.loaded_from, "to": self.loaded_to}
        if self.jump_to > self.loaded_to:
            record["jump_to"] = self.jump_to
        if self.files:
            record["files"] = [file.name for file in self.files]
        return record

    def __repr__(self) -> str:
        loaded = f"({self.loaded_from}, {self.loaded_to}]"
        return f"Update({self.task.name} #{self.number}, {loaded}, track {self.track})"
