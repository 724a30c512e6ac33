"""Who says how much of its window a query reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshline.kernel.core.job import Job
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.queries.iteration import Allowance
    from freshline.kernel.queries.membership import JoiningQuery
    from freshline.kernel.queries.task import QueryTask


class Shedding:
    """The controller of a pool of queries, where its policy sheds."""

    def allowance(self, task: QueryTask) -> Allowance:
        """An iteration of the query is released now: what it may take."""
        raise NotImplementedError

    def reschedule(self, now: int) -> None:
        """The loads of its queries have been measured."""
        raise NotImplementedError

    def became_idle(self, task: QueryTask, now: int) -> None:
        """The query has no iteration any more that is released and unfinished; it may have gone."""

    def comes(self, coming: JoiningQuery, now: int) -> None:
        """Another query is to join the pool."""
        coming.join(now)

    def goes(self, name: str) -> None:
        """A query that is still to join is not to join any more."""

    def ended(self, job: Job, now: int) -> None: ...

    def review(self, now: int) -> None: ...


def shedding_of(pool: TrackPool) -> Shedding | None:
    """Who sheds in a pool of queries; None where everything is read."""
    controller = pool.controller
    return controller if isinstance(controller, Shedding) else None
