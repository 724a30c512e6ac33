"""What is observed of the queries of a run: answers, misses, and what misses are put down to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from freshline.queries.iteration import Iteration

Why = Literal["failed", "unknown cost", "own cost", "others"]
# Which of the assumptions did not hold.
_IN_WORDS: Final[dict[Why, str]] = {
    "failed": "failed",
    "unknown cost": "ran before its cost was known",
    "own cost": "took longer than its budget: a part took longer than any before",
    "others": "waited for others, or for the machine, longer than their budgets and parts allow",
}


@dataclass(slots=True)
class QueryFigures:
    """A query since it came."""

    iterations: int = 0
    misses: dict[Why, int] = field(default_factory=dict)
    keep: float | None = None  # of the last answer
    keep_sum: float = 0.0
    budget_us: int | None = None  # of the last iteration
    finished_us: int | None = None
    message: str | None = None  # what went wrong last

    @property
    def missed(self) -> int:
        return sum(self.misses.values())

    @property
    def missed_because(self) -> str | None:
        """What its misses are put down to."""
        said = [f"{count} {_IN_WORDS[why]}" for why, count in self.misses.items()]
        return ", ".join(said) or None

    def answered(self, job: Iteration, keep: float, finished_us: int, ran_us: int, known: bool) -> None:
        """An answer is there, and ran for so long. `known`: what its parts would cost was."""
        self.iterations += 1
        self.budget_us = job.budget_us
        self.keep = keep
        self.keep_sum += keep
        self.finished_us = finished_us
        self.message = None
        if finished_us > job.deadline:
            over = job.budget_us is not None and ran_us > job.budget_us
            self._missed("unknown cost" if not known else "own cost" if over else "others")

    def failed(self, reason: str, now: int) -> None:
        """There is no answer."""
        self.iterations += 1
        self.keep = 0.0
        self.finished_us = now
        self.message = reason
        self._missed("failed")

    def _missed(self, why: Why) -> None:
        self.misses[why] = self.misses.get(why, 0) + 1
