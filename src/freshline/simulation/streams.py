"""Streams of tuples that simulated queries read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Protocol

from freshline.base.duration import SECOND


class TupleStream(Protocol):
    """Numbers of tuples over time."""

    def tuples(self, from_us: int, to_us: int) -> int:
        """The tuples in (from, to]. Before instant 0 a stream has its first rate."""


class ConstantRate:
    """A number of tuples a second, evenly spread.

    >>> ConstantRate(3).tuples(-500_000, 1_000_000)
    5
    """

    def __init__(self, rate: Fraction | int) -> None:
        self._rate = Fraction(rate)

    def tuples(self, from_us: int, to_us: int) -> int:
        whole, parts = self._rate.numerator, self._rate.denominator * SECOND
        return to_us * whole // parts - from_us * whole // parts


class ChangingRate:
    """Rates that change at given instants; the first instant is 0.

    >>> ChangingRate([(0, 10), (2_000_000, 40)]).tuples(1_000_000, 3_000_000)
    50
    """

    def __init__(self, rates: Sequence[tuple[int, Fraction | int]]) -> None:
        assert rates, "a stream without a rate"
        assert rates[0][0] == 0, "the first rate is from 0 on"
        self._from = [at for at, _ in rates]
        self._rates = [Fraction(rate) / SECOND for _, rate in rates]
        lengths = [after - before for before, after in pairwise(self._from)]
        parts = [rate * length for rate, length in zip(self._rates, lengths, strict=False)]
        self._until = list(accumulate(parts, initial=Fraction(0)))

    def tuples(self, from_us: int, to_us: int) -> int:
        return self._total(to_us) - self._total(from_us)

    def _total(self, at: int) -> int:
        """All tuples up to then, less those before 0."""
        number = max(0, bisect_right(self._from, at) - 1)
        return int((self._until[number] + self._rates[number] * (at - self._from[number])) // 1)


class TupleArrivals:
    """Tuples at given instants, each of which counts as `each`.

    >>> TupleArrivals([-5, 0, 10, 20], Fraction(3, 2)).tuples(-5, 10)
    3
    """

    def __init__(self, instants: Sequence[int], each: Fraction | int = 1) -> None:
        self._instants = instants
        self._each = Fraction(each)

    def tuples(self, from_us: int, to_us: int) -> int:
        return self._total(to_us) - self._total(from_us)

    def _total(self, at: int) -> int:
        """All tuples up to then."""
        return int(bisect_right(self._instants, at) * self._each)
