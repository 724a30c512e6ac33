"""Figures of the queries of a run: answers, misses and the reasons of misses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from freshline.kernel.queries.iteration import Iteration

Why = Literal["failed", "unknown cost", "look", "own cost", "others"]
# The assumption that did not hold.
_IN_WORDS: Final[dict[Why, str]] = {
    "failed": "failed",
    "unknown cost": "ran before its cost was known",
    "look": "read beyond its budget, to learn what that costs now",
    "own cost": "took longer than its budget: a part took longer than any before",
    "others": "waited for others, or for the machine, longer than their budgets and parts allow",
}


@dataclass(frozen=True, slots=True)
class IterationResult:
    """The result of an iteration."""

    keep: float
    finished_us: int
    ran_us: int  # without pauses
    known: bool  # whether the cost of its parts was known
    looked: bool = False  # whether it read beyond its budget, to learn the present cost


@dataclass(slots=True)
class QueryFigures:
    """The figures of a query since its admission."""

    iterations: int = 0
    misses: dict[Why, int] = field(default_factory=dict)
    keep: float | None = None  # of the last answer
    keep_sum: float = 0.0
    budget_us: int | None = None  # of the last iteration
    finished_us: int | None = None
    looks: int = 0
    message: str | None = None  # the last failure

    @property
    def missed(self) -> int:
        return sum(self.misses.values())

    @property
    def missed_because(self) -> str | None:
        """The reasons of its misses as a sentence."""
        said = [f"{count} {_IN_WORDS[why]}" for why, count in self.misses.items()]
        return ", ".join(said) or None

    def answered(self, job: Iteration, done: IterationResult) -> None:
        self.iterations += 1
        self.budget_us = job.budget_us
        self.keep = done.keep
        self.keep_sum += done.keep
        self.finished_us = done.finished_us
        self.looks += done.looked
        self.message = None
        if done.finished_us > job.deadline:
            self._missed(_cause(job, done))

    def failed(self, reason: str, now: int) -> None:
        self.iterations += 1
        self.keep = 0.0
        self.finished_us = now
        self.message = reason
        self._missed("failed")

    def _missed(self, why: Why) -> None:
        self.misses[why] = self.misses.get(why, 0) + 1


def _cause(job: Iteration, done: IterationResult) -> Why:
    if not done.known:
        return "unknown cost"
    if done.looked:
        return "look"
    return "own cost" if job.budget_us is not None and done.ran_us > job.budget_us else "others"
