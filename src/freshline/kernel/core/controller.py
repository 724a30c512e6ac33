"""Who adapts a pool while it runs."""

from __future__ import annotations

from typing import Protocol, TypeVar

from freshline.kernel.core.job import Job

J = TypeVar("J", bound=Job, contravariant=True)


class Controller(Protocol[J]):
    """Asked by its pool after a job has ended, before other jobs are released for it, and before dispatch.

    What it wants to do at other instants it sets a timer for. What is measured outside reaches it as an
    event, whose priority says when: between those of ends and arrivals it is taken when all jobs of its
    instant have ended, and before any release of it.
    """

    def ended(self, job: J, now: int) -> None:
        """A job has ended, well or badly. Its track is not free yet."""

    def review(self, now: int) -> None:
        """Jobs are about to be dispatched: what is to change for them changes now."""
