"""Non-preemptive global EDF on m tracks: how late a job may finish (papers 001 and 004)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import nlargest
from operator import gt

from freshline.planning.analysis.exact import exact_sum, largest, scaled_quotients
from freshline.planning.analysis.utilization import tracks_at_least


class NpGedf:
    """The tardiness bound Y_i = e_i + x of a task set, for any number of tracks m.

    x = (sum of the m largest e − e_min) / (m − sum of the m−1 largest W), with W_j = e_j / (the shortest
    period that task j may ever have) and e_min the smallest e of all tasks, subtracted once. With fewer tasks
    min(n, m) and min(n, m−1) replace m and m−1 (paper 001, Theorem 1; paper 004 refers to it in Theorem 2).
    W is not the utilisation if periods change: with u_j in its place the bound is unsafe. On one track it is
    paper 004's fallback e_i + max e − min e (section 4.2). If batches may block (docs/batches.md),
    max(e, blocking) replaces e in the sum of the largest.

    The theorem needs U ≤ m and every e at most its period; otherwise the answer is `None`.

    >>> NpGedf([128, 128, 1, 1], [256, 256, 8, 8]).x(2)
    Fraction(170, 1)
    """

    def __init__(
        self,
        costs: Sequence[int],
        periods: Sequence[int],
        shortest_periods: Sequence[int] | None = None,
        blocking: int = 0,
    ) -> None:
        assert len(costs) == len(periods) > 0, "a task set has at least one task"
        self._costs = costs
        self._blocking = blocking
        self._shortest_periods = periods if shortest_periods is None else shortest_periods
        self._some_cost_exceeds_its_period = any(map(gt, costs, self._shortest_periods))
        self._rates = scaled_quotients(costs, self._shortest_periods)
        self.tracks_at_least = tracks_at_least(costs, periods)

    def x(self, tracks: int) -> Fraction | None:
        """x exactly; `None` if the theorem does not apply."""
        if tracks < self.tracks_at_least or self._some_cost_exceeds_its_period:
            return None
        longest = nlargest(tracks, self._costs)
        excess = sum(max(cost, self._blocking) for cost in longest) - min(self._costs)
        return excess / self._not_carried(tracks)

    def blocking_most(self, tracks: int, x: int) -> int:
        """The longest blocking that keeps x at most that; without blocking it must be so."""
        budget = x * self._not_carried(tracks) + min(self._costs)
        longest = nlargest(tracks, self._costs)  # the longest first
        spent = sum(longest)
        for count, cost in enumerate(reversed(longest), start=1):
            # As if the `count` shortest of them had that length.
            spent -= cost
            blocking = (budget - spent) // count
            if count == len(longest) or blocking < longest[-count - 1]:
                return blocking
        raise AssertionError("a task set has at least one task")

    def _not_carried(self, tracks: int) -> Fraction:
        """m − the sum of the m − 1 largest W."""
        carried = largest(min(len(self._costs), tracks - 1), self._rates, self._rate)
        numerator, denominator = exact_sum(
            [self._costs[task] for task in carried], [self._shortest_periods[task] for task in carried]
        )
        return Fraction(tracks * denominator - numerator, denominator)

    def _rate(self, task: int) -> Fraction:
        return Fraction(self._costs[task], self._shortest_periods[task])
