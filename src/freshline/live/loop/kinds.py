"""The kinds of jobs that can run live: who does them, and who says what their ends mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from freshline.kernel.core.job import Job
from freshline.live.loop.messages import Judge


class Worker(Protocol):
    """Runs jobs of its kind on one track, in the track's own thread."""

    def run(self, job: Any) -> object:
        """What the job did; whatever it raises is how it failed.

        Of a job that may be put aside it is a generator: each `next` does one part, and it returns what the
        job did.
        """


def _for_good(job: Job) -> None:
    raise AssertionError(f"{job!r} cannot be cancelled")


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job."""

    worker: Callable[[int], Worker]  # for the track of that number
    judge: Judge
    cancel: Callable[[Job], None] = _for_good  # in the driver's thread: it must not take long


# By the job's type.
Kinds = Mapping[type[Job], JobKind]
