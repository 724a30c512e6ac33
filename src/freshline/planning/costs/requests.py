"""What the parts of a request cost, and so how many slices each of them reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median
from typing import Final

from freshline.planning.costs.iterations import PastPart, fit_parts
from freshline.sql.slices import SLICES

# Of the time until its deadline a part takes no more than this share: a request that waits for one that has
# just begun, and is cancelled in the middle of its own last, still has half of it.
_OF_DEADLINE: Final = 4
# The first part is shorter than the others: it is the one that there must be, and parts of unlike sizes tell
# what it costs to begin one. One slice has no scatter, so it has two.
_FIRST: Final = 2
_SLICES_LEAST: Final = 2
# Before anybody has asked anything: µs of a part, and of a byte.
_BEFORE_ANY: Final = (150_000.0, 0.02)
PART_ASSUMED_US: Final = int(_BEFORE_ANY[0])  # a part that reads next to nothing
# Under this name the history has the parts of all requests.
ALL_REQUESTS: Final = "request bytes"
# Of the last so many parts three quarters take no longer than what is usual.
_LATELY: Final = 40
_USUAL: Final = 0.75


@dataclass(frozen=True, slots=True)
class PartCost:
    """What a part costs: to begin one, and for each slice of the tables as they are."""

    begin_us: float
    slice_us: float

    def us(self, slices: int) -> int:
        """A part of so many."""
        return max(1, ceil(self.begin_us + self.slice_us * slices))

    def slices_in(self, time_us: float) -> int:
        """How many slices a part of at most that length reads; 0: none is as short as that."""
        left_us = time_us - self.begin_us
        if left_us < self.slice_us:
            return 0
        return SLICES if self.slice_us * SLICES <= left_us else int(left_us / self.slice_us)

    def times(self, ratio: float) -> PartCost:
        return PartCost(self.begin_us * ratio, self.slice_us * ratio)


def part_most_us(deadline_us: int, most_us: int) -> int:
    """How long a part of a request may be that is to be answered after so long."""
    return min(deadline_us // _OF_DEADLINE, most_us)


def usual_cost(parts: Sequence[PastPart]) -> tuple[float, float] | None:
    """What it usually costs to begin a part, and to read a row; None where parts do not tell yet.

    Not at its worst, as with continuous queries: policies count with what requests cost together, and one
    part for which the machine was busy would have them turn people away for hours.
    """
    fitted = fit_parts(parts)
    if fitted is None:
        return None
    lately = [part for part in parts if part.slices][-_LATELY:]
    ratios = sorted(part.duration_us / fitted.read_us(part.rows) for part in lately)
    usual = ratios[int(_USUAL * (len(ratios) - 1))]
    return fitted.part_us * usual, fitted.us_per_row * usual


def assumed_cost(usual: tuple[float, float] | None, size: int) -> PartCost:
    """Of SQL that nobody has asked before, over so many bytes: what bytes have usually cost, so far.

    >>> assumed_cost(None, 256_000_000)
    PartCost(begin_us=150000.0, slice_us=20000.0)
    """
    begin_us, byte_us = usual or _BEFORE_ANY
    return PartCost(begin_us, byte_us * size / SLICES)


def learned_cost(parts: Sequence[PastPart], rows: int, assumed: PartCost) -> PartCost:
    """Of SQL whose parts took so long, over tables of so many rows by now.

    Where they are all alike they do not tell what it costs to begin one: then that is as assumed, but for a
    factor.
    """
    usual = usual_cost(parts)
    if usual is not None:
        return PartCost(usual[0], usual[1] * rows / SLICES)
    lately = [part for part in parts if part.slices][-_LATELY:]
    if not lately:
        return assumed
    return assumed.times(median(part.duration_us / assumed.us(part.slices) for part in lately))


def part_sizes(cost: PartCost, most_us: int, share: Fraction = Fraction(1)) -> tuple[int, ...]:
    """How many slices each part reads, so that none costs more than that, and all of them that share.

    Where even one slice costs more, to begin a part takes most of it: then a part reads for half as long.

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
