"""The instants that the test by levels examines: releases and deadlines, from the critical instant on.

The demand of the queries down to a level grows only at a release, so no other instant can be better. Instants
depend only on strides and deadlines, and are cached between reschedulings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

# Fewer instants make no verdict wrong, only more careful: a level that holds at one of them holds.
INSTANTS_MAX: Final = 4_096
BINI_BUTTAZZO_MAX: Final = 128


class SchedulingPoints(NamedTuple):
    """The points of queries in the order of their priority."""

    instants: tuple[int, ...]  # rising
    reach: tuple[int, ...]  # by level: the number of instants up to its deadline


@lru_cache(maxsize=32)
def scheduling_points(periods: tuple[int, ...], deadlines: tuple[int, ...]) -> SchedulingPoints:
    """All instants l·P_j up to the last deadline and all deadlines.

    If they are too many, those of the longest strides: most releases coincide there.
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
    """Levels that hold only if all hold: the last of each group with equal deadline and blocking."""
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
