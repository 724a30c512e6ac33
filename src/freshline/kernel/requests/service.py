"""Who decides which requests are answered, and how well: the order of a pool that holds classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from freshline.kernel.requests.class_targets import State

if TYPE_CHECKING:
    from freshline.kernel.core.pool import TrackPool
    from freshline.kernel.requests.pending_request import PendingRequest
    from freshline.kernel.requests.request import RequestPart


class ClassFigures(NamedTuple):
    """How a class fares; errors and shares are fractions."""

    ate: float | None  # the mean error of those answered in the last period; None: nobody was
    admitted: float | None  # the share of those submitted in the last period; None: nobody asked
    quota: float | None  # the error that requests are now given parts for, where the policy has quotas
    waiting: int  # requests that are admitted and not answered
    state: State  # whether it gets what it was promised


class Service:
    """The order and controller of a pool with classes, as their tasks and drivers know it."""

    # An update that changes values by no more than that, weighted by those who read them, may be discarded.
    mwde: float = 0.0

    def admit(self, pending: PendingRequest, now: int) -> int | None:
        """Whether the request is admitted, and waits from now on: None, or when to ask again (µs)."""
        raise NotImplementedError

    def wait(self, pending: PendingRequest, now: int) -> None:
        """It is ready for its next part."""
        raise NotImplementedError

    def part_ended(self, job: RequestPart, cost_us: int, done: bool, now: int) -> None:
        """A part has ended, well or without effect, after that time on its track."""
        raise NotImplementedError

    def answered(self, pending: PendingRequest, now: int) -> None:
        """The request is over."""
        raise NotImplementedError

    def withdrawn(self, pending: PendingRequest, now: int) -> None:
        """The request is over, and who asked has gone: it counts for nothing."""
        raise NotImplementedError

    def due(self, at: int) -> int | None:
        """A period of control is over; returns when the next one is."""
        raise NotImplementedError

    def discarded(self, cost_us: int, now: int) -> None:
        """An update was discarded that would have cost so much."""
        raise NotImplementedError

    def data_error_factor(self, class_name: str) -> float:
        """By how much the class weighs errors of the data that it reads."""
        raise NotImplementedError

    def figures(self, class_name: str) -> ClassFigures:
        """How the class fares."""
        raise NotImplementedError


def service_of(pool: TrackPool) -> Service | None:
    """Who decides about the requests of a pool; None where it holds no classes, or drains its tables."""
    controller = pool.controller
    return controller if isinstance(controller, Service) else None
