"""Non-preemptive global EDF on m tracks: how late a job may finish (papers 001 and 004)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import gt

from freshline.analysis.exact import (
    SCALE,
    Bracketed,
    Quotient,
    ceiling_of,
    exact_sum,
    largest,
    scaled_quotients,
)


class NpGedf:
    """The tardiness bound Y_i = e_i + x of a task set, for every number of tracks m.

    x = (sum of the m largest e − e_min) / (m − sum of the m−1 largest W), with W_j = e_j / (the shortest
    period that task j may ever have), e_min the smallest e of all tasks, subtracted once, and min(n, m),
    min(n, m−1) in place of m, m−1 where there are fewer tasks (paper 001, Theorem 1; paper 004 refers to it
    in Theorem 2). W is not the utilisation where periods change: with u_j in its place the bound is unsafe.
    On one track it is paper 004's fallback e_i + max e − min e (section 4.2).

    The theorem asks for U ≤ m and for every e to be at most its period; where it does not apply the answers
    are `None`. Everything is sorted and summed once, so that scanning all m is cheap: x is not monotone
    in m.

    >>> NpGedf([128, 128, 1, 1], [256, 256, 8, 8]).x(2)
    Fraction(170, 1)
    """

    def __init__(
        self, costs: Sequence[int], periods: Sequence[int], shortest_periods: Sequence[int] | None = None
    ) -> None:
        assert len(costs) == len(periods) > 0, "a task set has at least one task"
        self._costs = costs
        self._shortest_periods = periods if shortest_periods is None else shortest_periods
        self._some_cost_exceeds_its_period = any(map(gt, costs, self._shortest_periods))
        self._largest_costs_sum = [0, *accumulate(sorted(costs, reverse=True))]
        self._cost_min = min(costs)
        rates = scaled_quotients(costs, self._shortest_periods)
        self._rates = rates
        self._largest_rates_sum = [0, *accumulate(sorted(rates, reverse=True))]
        utilizations = rates if shortest_periods is None else scaled_quotients(costs, periods)
        total = sum(utilizations)
        utilization = Bracketed(total, total + len(costs), lambda: exact_sum(costs, periods))
        self.tracks_at_least = utilization.ceiling()

    def applies(self, tracks: int) -> bool:
        """Whether U ≤ m and every e is at most its shortest period."""
        return tracks >= self.tracks_at_least and not self._some_cost_exceeds_its_period

    def x(self, tracks: int) -> Fraction | None:
        """x exactly; `None` where the theorem does not apply."""
        return Fraction(*self._x_exactly(tracks)) if self.applies(tracks) else None

    def x_ceiling(self, tracks: int) -> int | None:
        """x rounded up to the unit; `None` where the theorem does not apply."""
        if not self.applies(tracks):
            return None
        carried = min(len(self._costs), tracks - 1)
        numerator = self._excess(tracks) * SCALE
        denominator = tracks * SCALE - self._largest_rates_sum[carried]
        lowest = ceiling_of(numerator, denominator)
        if lowest == ceiling_of(numerator, denominator - carried):
            return lowest
        return ceiling_of(*self._x_exactly(tracks))

    def _excess(self, tracks: int) -> int:
        return self._largest_costs_sum[min(len(self._costs), tracks)] - self._cost_min

    def _x_exactly(self, tracks: int) -> Quotient:
        carried = largest(min(len(self._costs), tracks - 1), self._rates, self._rate)
        numerator, denominator = exact_sum(
            [self._costs[task] for task in carried], [self._shortest_periods[task] for task in carried]
        )
        return self._excess(tracks) * denominator, tracks * denominator - numerator

    def _rate(self, task: int) -> Fraction:
        return Fraction(self._costs[task], self._shortest_periods[task])
