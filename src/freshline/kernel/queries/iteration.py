"""One answer of a continuous query."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from freshline.kernel.core.job import Job

if TYPE_CHECKING:
    from freshline.kernel.queries.task import QueryTask


class Allowance(NamedTuple):
    """What an iteration may use: a budget of time, and a share of its window."""

    budget_us: int | None  # None: no limit
    keep: Fraction


WHOLE: Final = Allowance(None, Fraction(1))


class HeldBack(NamedTuple):
    """The table where a query's windows end, if another of its tables is more than a window further."""

    table: str
    freshness: int  # 0: nothing was loaded yet
    behind_us: int  # behind the freshest table of the query


class ReleasedIteration(NamedTuple):
    """An iteration that has not started."""

    at: int
    window_to: int
    allowance: Allowance
    held_back: HeldBack | None = None


class Iteration(Job):
    """A job that answers a query over (window_from, window_to].

    The driver stops before the part that would exceed the budget, and reads only the share `keep` of the
    window.
    """

    __slots__ = ("budget_us", "held_back", "keep", "window_from", "window_to")

    task: QueryTask

    def __init__(
        self, task: QueryTask, number: int, released: ReleasedIteration, start: int, track: int
    ) -> None:
        super().__init__(task, number, released.at, released.at + task.deadline_us, start, track)
        self.window_from = released.window_to - task.window_us
        self.window_to = released.window_to
        self.held_back = released.held_back
        self.budget_us, self.keep = released.allowance

    def record(self) -> dict[str, Any]:
        record = super().record() | {"from": self.window_from, "to": self.window_to}
        if self.budget_us is not None:
            record["budget"] = self.budget_us
        if self.keep != 1:
            record["keep"] = str(self.keep)
        return record

    def __repr__(self) -> str:
        return f"Iteration({self.task.name} #{self.number}, released {self.release})"
