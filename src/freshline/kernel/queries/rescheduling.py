"""When to measure, and to compute anew how much each query sheds."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from freshline.base.duration import SECOND

When = Literal["optimistic", "pessimistic", "permissive"]


class Rescheduling:
    """When one pool reschedules: every longest stride, after every iteration, or after enough loss."""

    def __init__(self, when: When, threshold: Fraction | None = None) -> None:
        assert (when == "permissive") == (threshold is not None), "permissive goes by a threshold"
        self.times = 0  # reschedules so far
        self._when = when
        self._threshold = threshold
        self._lost = Fraction(0)  # since the last reschedule

    def next_at(self, now: int, strides_us: Iterable[int]) -> int | None:
        """The next instant to reschedule, whatever happens."""
        if self._when != "optimistic":
            return None
        longest_us = max(strides_us, default=SECOND)  # some query may join
        return (now // longest_us + 1) * longest_us

    def is_due(self, lost: Fraction) -> bool:
        """Whether to reschedule after an iteration that ended with that weighted error."""
        if self._when != "permissive":
            return self._when == "pessimistic"
        self._lost += lost
        assert self._threshold is not None
        return self._lost > self._threshold

    def done(self) -> None:
        """Counts a reschedule."""
        self.times += 1
        self._lost = Fraction(0)
