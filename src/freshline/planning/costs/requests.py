"""The cost of the parts of a request, and so how many slices each part reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median
from typing import Final

from freshline.planning.costs.iterations import PastPart, fit_parts
from freshline.sql.slices import SLICES

# A part takes at most this share of the time until its deadline. A request that waits for a part just begun,
# and whose own last part is cancelled halfway, still has half of the time.
_OF_DEADLINE: Final = 4
# The first part is mandatory and shorter than the others: parts of different sizes show the fixed cost. It
# has at least two slices, as one slice has no scatter.
_FIRST: Final = 2
_SLICES_LEAST: Final = 2
# Before the first request: µs of a part, and of a byte.
_BEFORE_ANY: Final = (150_000.0, 0.02)
PART_ASSUMED_US: Final = int(_BEFORE_ANY[0])  # a part that reads almost nothing
# The history's name for the parts of all requests.
ALL_REQUESTS: Final = "request bytes"
# Three quarters of the last parts, this many, take no longer than the usual cost.
_LATELY: Final = 40
_USUAL: Final = 0.75


@dataclass(frozen=True, slots=True)
class PartCost:
    """The cost of a part: a fixed cost, and one for each slice of the tables as they are."""

    begin_us: float
    slice_us: float

    def us(self, slices: int) -> int:
        """The cost of a part of that many slices."""
        return max(1, ceil(self.begin_us + self.slice_us * slices))

    def slices_in(self, time_us: float) -> int:
        """How many slices a part of at most that length reads; 0: no part is that short."""
        left_us = time_us - self.begin_us
        if left_us < self.slice_us:
            return 0
        return SLICES if self.slice_us * SLICES <= left_us else int(left_us / self.slice_us)

    def times(self, ratio: float) -> PartCost:
        return PartCost(self.begin_us * ratio, self.slice_us * ratio)


def part_most_us(deadline_us: int, most_us: int) -> int:
    """How long a part may be in a request with that deadline."""
    return min(deadline_us // _OF_DEADLINE, most_us)


def usual_cost(parts: Sequence[PastPart]) -> tuple[float, float] | None:
    """The usual fixed cost of a part, and the cost of a row; None if parts do not show it yet.

    It is not the worst case, as with continuous queries. Policies sum the costs of requests, and one part on
    a busy machine would make them reject requests for hours.
    """
    fitted = fit_parts(parts)
    if fitted is None:
        return None
    lately = [part for part in parts if part.slices][-_LATELY:]
    ratios = sorted(part.duration_us / fitted.read_us(part.rows) for part in lately)
    usual = ratios[int(_USUAL * (len(ratios) - 1))]
    return fitted.part_us * usual, fitted.us_per_row * usual


def assumed_cost(usual: tuple[float, float] | None, size: int) -> PartCost:
    """The cost of SQL that is asked for the first time, over that many bytes: the usual cost of bytes.

    >>> assumed_cost(None, 256_000_000)
    PartCost(begin_us=150000.0, slice_us=20000.0)
    """
    begin_us, byte_us = usual or _BEFORE_ANY
    return PartCost(begin_us, byte_us * size / SLICES)


def learned_cost(parts: Sequence[PastPart], rows: int, assumed: PartCost) -> PartCost:
    """The cost of SQL with these past parts, over tables of that many rows now.

    If the parts are all alike they do not show the fixed cost: then it is as assumed, times a factor.
    """
    usual = usual_cost(parts)
    if usual is not None:
        return PartCost(usual[0], usual[1] * rows / SLICES)
    lately = [part for part in parts if part.slices][-_LATELY:]
    if not lately:
        return assumed
    return assumed.times(median(part.duration_us / assumed.us(part.slices) for part in lately))


def part_sizes(cost: PartCost, most_us: int, share: Fraction = Fraction(1)) -> tuple[int, ...]:
    """How many slices each part reads, so that no part costs more than that; all together read that share.

    If even one slice costs more, the fixed cost is most of it: then a part reads for half as long.

    >>> part_sizes(PartCost(100_000, 4_000), 500_000)
    (50, 69, 69, 68)
    >>> part_sizes(PartCost(100_000, 4_000), 500_000, Fraction(1, 4)), part_sizes(PartCost(1, 0), 500_000)
    ((64,), (256,))
    """
    wanted = max(1, int(SLICES * share))
    longest = max(1, cost.slices_in(most_us) or cost.slices_in(1.5 * cost.begin_us))
    if wanted <= longest:
        return (wanted,)
    first = max(min(_SLICES_LEAST, longest), longest // _FIRST)
    left = wanted - first
    count = -(-left // longest)
    return (first, *(left // count + (number < left % count) for number in range(count)))
