"""The order of a pool with classes: decides which requests are answered, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from freshline.kernel.requests.class_targets import State

if TYPE_CHECKING:
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.requests.pending_request import PendingRequest
    from freshline.kernel.requests.request import RequestPart


class ClassFigures(NamedTuple):
    """Figures of a class; errors and shares are fractions."""

    ate: float | None  # the mean error of requests answered in the last period; None: there were none
    admitted: float | None  # the share of requests submitted in the last period; None: there were none
    quota: float | None  # the error that the quota of parts aims at now, if the policy has quotas
    waiting: int  # requests that are admitted and not answered
    state: State  # whether it meets its targets


class Service:
    """The order and controller of a pool with classes, as their tasks and drivers know it."""

    # An update that changes values by at most that, weighted by the requests that read them, may be
    # discarded.
    mwde: float = 0.0

    def admit(self, pending: PendingRequest, now: int) -> int | None:
        """Admits the request, which waits from now on (None), or returns after how many µs to ask again."""
        raise NotImplementedError

    def wait(self, pending: PendingRequest, now: int) -> None:
        """The request is ready for its next part."""
        raise NotImplementedError

    def part_ended(self, job: RequestPart, cost_us: int, done: bool, now: int) -> None:
        """A part has ended, with or without effect, after that time on its track."""
        raise NotImplementedError

    def answered(self, pending: PendingRequest, now: int) -> None:
        """The request is over."""
        raise NotImplementedError

    def withdrawn(self, pending: PendingRequest, now: int) -> None:
        """The request is over as its client has gone: it counts for nothing."""
        raise NotImplementedError

    def due(self, at: int) -> int | None:
        """A control period is over; returns the end of the next one."""
        raise NotImplementedError

    def discarded(self, cost_us: int, now: int) -> None:
        """An update was discarded that would have cost that much."""
        raise NotImplementedError

    def data_error_factor(self, class_name: str) -> float:
        """The weight of errors in the data that the class reads."""
        raise NotImplementedError

    def figures(self, class_name: str) -> ClassFigures:
        raise NotImplementedError


def service_of(pool: TrackPool) -> Service | None:
    """The service that decides about a pool's requests; None without classes, or while it drains."""
    controller = pool.controller
    return controller if isinstance(controller, Service) else None
