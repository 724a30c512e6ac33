"""The instants at which the test by levels looks: releases and deadlines, counted from the critical instant.

What the queries down to a level ask for only grows at a release, so that no other instant can be better.
They depend on strides and deadlines alone and are kept between two reschedulings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

# Some instants fewer make no verdict wrong, only careful: what holds at one of them holds.
INSTANTS_MAX: Final = 4_096
BINI_BUTTAZZO_MAX: Final = 128


class SchedulingPoints(NamedTuple):
    """Those of queries in the order of their priority."""

    instants: tuple[int, ...]  # rising
    reach: tuple[int, ...]  # by level, how many of the instants are no later than its deadline


@lru_cache(maxsize=32)
def scheduling_points(periods: tuple[int, ...], deadlines: tuple[int, ...]) -> SchedulingPoints:
    """All instants l·P_j up to the last deadline and all deadlines.

    Where they are too many, those of the longest strides: most releases come together there.
    """
    last = max(deadlines, default=0)
    instants = set(deadlines)
    for period in sorted(set(periods), reverse=True):
        if len(instants) + last // period > INSTANTS_MAX:
            break
        instants.update(range(period, last + 1, period))
    rising = tuple(sorted(instants))
    return SchedulingPoints(rising, tuple([bisect_right(rising, deadline) for deadline in deadlines]))


def decisive_levels(deadlines: Sequence[int], blocking: Sequence[int]) -> set[int]:
    """Levels that hold only if all hold: of those alike in deadline and blocking, the last."""
    return {*{alike: level for level, alike in enumerate(zip(deadlines, blocking, strict=True))}.values()}


def bini_buttazzo(level: int, periods: Sequence[int], deadlines: Sequence[int]) -> list[int]:
    """Fewer instants that decide a level whatever the costs are (Bini and Buttazzo 2004).

    >>> bini_buttazzo(2, [3, 8, 20], [3, 8, 20])
    [15, 16, 18, 20]
    """
    instants = {deadlines[level]}
    for period in reversed(periods[:level]):
        instants |= {instant // period * period for instant in instants if instant >= period}
        if len(instants) > BINI_BUTTAZZO_MAX:
            instants = {*sorted(instants)[-BINI_BUTTAZZO_MAX:]}
    return sorted(instants)
