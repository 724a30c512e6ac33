"""A job of a node: one step of a task, or several in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from freshline.kernel.core.job import Job

if TYPE_CHECKING:
    from freshline.kernel.steps.task import StepTask
    from freshline.kernel.tables.events import DataFile


class Instance(NamedTuple):
    """One execution of a step: its range is fixed when all inputs are there (5.4)."""

    loaded_from: int
    loaded_to: int
    files: tuple[DataFile, ...]  # if the step loads a feed
    came_at: int  # when the burst arrived at its source
    created: int  # when all inputs of its task's first step were there
    ready: int  # when all its own inputs were there
    deadline: int  # created + the sub-deadlines of its task up to the next step whose result leaves the task
    recovery: bool = False  # of a backlog: it gives way to all that is not

    def with_later(self, later: Sequence[Instance]) -> Instance:
        """One instance for this and later ones of a step that loads a feed."""
        last = later[-1] if later else self
        files = (*self.files, *(file for instance in later for file in instance.files))
        return self._replace(loaded_to=last.loaded_to, files=files, ready=last.ready)


class StepRun(NamedTuple):
    """One step within a job: loads (`loaded_from`, `loaded_to`] into its table and commits."""

    step: StepTask
    instance: Instance

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def loaded_from(self) -> int:
        return self.instance.loaded_from

    @property
    def loaded_to(self) -> int:
        return self.instance.loaded_to

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.instance.files


class StepJob(Job):
    """Steps of a task that run in one job, each committed before the next; most often one.

    It has the deadline of its last step: with that of the first, a long job would go before others that are
    due sooner than its rest.
    """

    __slots__ = ("parts",)

    task: StepTask

    def __init__(
        self, task: StepTask, number: int, parts: tuple[StepRun, ...], start: int, track: int
    ) -> None:
        super().__init__(task, number, parts[0].instance.created, parts[-1].instance.deadline, start, track)
        self.parts = parts

    def record(self) -> dict[str, Any]:
        parts = []
        for part in self.parts:
            record: dict[str, Any] = {"step": part.name, "from": part.loaded_from, "to": part.loaded_to}
            if part.files:
                record["files"] = [file.name for file in part.files]
            if part.instance.recovery:
                record["recovery"] = True
            parts.append(record)
        return super().record() | {"parts": parts}

    def __repr__(self) -> str:
        return f"StepJob({' -> '.join(part.name for part in self.parts)} #{self.number}, track {self.track})"
