"""Exact decisions on sums of rationals, cheaply: by an interval, and exactly only if that does not decide.

A float utilisation of 2.0000000000000001 flips a verdict, and a sum of `Fraction`s needs a gcd of ever longer
numbers at each step. Here a quotient a/b is the integer ⌊a·2^64/b⌋, too small by less than one unit. So n of
them are summed to within n units, and the exact sum is needed only if a decision falls inside that interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from heapq import nlargest
from math import gcd

SCALE_BITS = 64
SCALE = 1 << SCALE_BITS

# Numerator and positive denominator, not reduced: the gcd of two long numbers costs more than the sum.
Quotient = tuple[int, int]


def ceiling_of(numerator: int, denominator: int) -> int:
    """⌈numerator / denominator⌉ for a positive denominator."""
    return -(-numerator // denominator)


def scaled_quotients(numerators: Sequence[int], denominators: Sequence[int]) -> list[int]:
    """⌊a·2^64/b⌋ for each pair, each less than one unit below the true value."""
    return [(a << SCALE_BITS) // b for a, b in zip(numerators, denominators, strict=True)]


def largest(count: int, scaled: Sequence[int], exactly: Callable[[int], Fraction]) -> list[int]:
    """The places of the `count` largest rationals, given ⌊·2^64⌋ of each; equal ones are compared exactly.

    Rounding down never reverses an order, so only equal integers are in doubt.
    """
    order = sorted(range(len(scaled)), key=scaled.__getitem__, reverse=True)
    if not 0 < count < len(order) or scaled[order[count - 1]] > scaled[order[count]]:
        return order[:count]
    tied = scaled[order[count]]
    certain = [place for place in order[:count] if scaled[place] > tied]
    doubtful = [place for place in order[len(certain) :] if scaled[place] == tied]
    return certain + nlargest(count - len(certain), doubtful, key=exactly)


def exact_sum(numerators: Sequence[int], denominators: Sequence[int]) -> Quotient:
    """Σ a/b, not reduced.

    Equal denominators are added up first. The rest is a balanced tree of products: long numbers are
    multiplied only by numbers of about the same length, which keeps thousands of different denominators
    affordable.
    """
    by_denominator: dict[int, int] = {}
    for a, b in zip(numerators, denominators, strict=True):
        common = gcd(a, b)
        by_denominator[b // common] = by_denominator.get(b // common, 0) + a // common
    level = [(a, b) for b, a in sorted(by_denominator.items())]
    while len(level) > 1:
        paired = [_sum_of_two(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = paired + level[len(paired) * 2 :]
    return level[0] if level else (0, 1)


def _sum_of_two(first: Quotient, second: Quotient) -> Quotient:
    return first[0] * second[1] + second[0] * first[1], first[1] * second[1]


@dataclass(frozen=True, slots=True)
class BracketedRational:
    """A rational within [low, high] / 2^64; `exactly` computes it if that does not decide."""

    low: int
    high: int
    exactly: Callable[[], Quotient]

    def at_most(self, bound: int) -> bool:
        """Whether the rational is at most an integer."""
        if self.high <= bound * SCALE:
            return True
        if self.low > bound * SCALE:
            return False
        numerator, denominator = self.exactly()
        return numerator <= bound * denominator

    def ceiling(self) -> int:
        """The smallest integer that is not below the rational."""
        lowest = ceiling_of(self.low, SCALE)
        if lowest == ceiling_of(self.high, SCALE):
            return lowest
        return ceiling_of(*self.exactly())

    def exceeds(self, other: BracketedRational, share: int, other_share: int) -> bool:
        """Whether the rational divided by `share` is more than `other` divided by `other_share`."""
        if self.low * other_share > other.high * share:
            return True
        if self.high * other_share <= other.low * share:
            return False
        numerator, denominator = self.exactly()
        other_numerator, other_denominator = other.exactly()
        return numerator * other_denominator * other_share > other_numerator * denominator * share


def bracketed_sum(numerators: Sequence[int], denominators: Sequence[int]) -> BracketedRational:
    """Σ a/b, bracketed."""
    low = sum(scaled_quotients(numerators, denominators))
    return BracketedRational(low, low + len(numerators), cache(lambda: exact_sum(numerators, denominators)))
