"""The kinds of jobs in a live run: the worker and the judge of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from freshline.kernel.core.job import Job
from freshline.live.loop.messages import Judge


class Worker(Protocol):
    """Runs jobs of its kind on one track, in the track's own thread."""

    def run(self, job: Any) -> object:
        """Runs a job; returns its result or raises its failure.

        For a job that can be paused it is a generator: each `next` does one part, and it returns the result.
        """


def _for_good(job: Job) -> None:
    raise AssertionError(f"{job!r} cannot be cancelled")


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job."""

    worker: Callable[[int], Worker]  # by track number
    judge: Judge
    cancel: Callable[[Job], None] = _for_good  # called in the driver's thread, so it must be quick


# By the job's type.
Kinds = Mapping[type[Job], JobKind]
