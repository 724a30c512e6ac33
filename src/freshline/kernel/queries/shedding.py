"""Shedding: how much of its window a query reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshline.kernel.core.job import Job
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.queries.iteration import Allowance
    from freshline.kernel.queries.membership import JoiningQuery
    from freshline.kernel.queries.task import QueryTask


class Shedding:
    """The controller of a pool of queries with a policy that sheds."""

    def allowance(self, task: QueryTask) -> Allowance:
        """What the iteration that is released now may use."""
        raise NotImplementedError

    def reschedule(self, now: int) -> None:
        """The loads of its queries were measured."""
        raise NotImplementedError

    def became_idle(self, task: QueryTask, now: int) -> None:
        """The query has no unfinished iteration any more; it may have left."""

    def comes(self, coming: JoiningQuery, now: int) -> None:
        """A query is about to join the pool."""
        coming.join(now)

    def goes(self, name: str) -> None:
        """A query that was about to join no longer is."""

    def ended(self, job: Job, now: int) -> None: ...

    def review(self, now: int) -> None: ...


def shedding_of(pool: TrackPool) -> Shedding | None:
    """What sheds in a pool of queries; None if its queries read everything."""
    controller = pool.controller
    return controller if isinstance(controller, Shedding) else None
