"""A controller adapts a pool while it runs."""

from __future__ import annotations

from typing import Protocol, TypeVar

from freshline.kernel.core.job import Job

J = TypeVar("J", bound=Job, contravariant=True)


class Controller(Protocol[J]):
    """Its pool calls it when a job has ended, before that releases other jobs, and before dispatch.

    It sets a timer for what it does at other instants. Measurements reach it as an event, at that event's
    priority: between ends and arrivals, it is taken after all ends and before all releases of the instant.
    """

    def ended(self, job: J, now: int) -> None:
        """A job has ended or failed. Its track is not free yet."""

    def review(self, now: int) -> None:
        """Changes what has to change before jobs are dispatched."""
