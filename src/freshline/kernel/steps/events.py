"""Events of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from freshline.kernel.core.events import Event, JobEvent
from freshline.kernel.steps.job import StepJob

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


@dataclass(slots=True, eq=False)
class StepsCommitted(JobEvent):
    """A job has ended: each of its steps is as fresh as the end of its range, or as it says."""

    word, of = "committed", StepJob
    keys = (("reached", "reached"),)
    job: StepJob
    reached: int | None = None  # of a job with several files, if the last of them were dropped

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.committed(self.job, now, self.reached)


@dataclass(slots=True, eq=False)
class StepsDropped(JobEvent):
    """A job has ended without effect and without a retry: its file was quarantined, or is out of reach.

    A file that comes back is a new arrival.
    """

    word, of = "dropped", StepJob
    job: StepJob

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.dropped(self.job, now)


EVENTS: Final[tuple[type[Event], ...]] = (StepsCommitted, StepsDropped)
