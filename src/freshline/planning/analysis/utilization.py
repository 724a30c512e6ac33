"""The utilisation U = Σ e/p of a task set (paper 004, section 4), and its condition (9), U ≤ m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freshline.planning.analysis.exact import bracketed_sum

# Far finer than a float, so that 50 tasks of 0.132 print as 6.6, not as 6.6000000000000005.
_PRINTED_BITS: Final = 192


def utilization(costs: Sequence[int], periods: Sequence[int]) -> float:
    """U for display. No verdict may depend on it: `fits` and `tracks_at_least` are exact."""
    scaled = sum([(cost << _PRINTED_BITS) // period for cost, period in zip(costs, periods, strict=True)])
    return scaled / (1 << _PRINTED_BITS)


def readable(utilization: float, tracks: int, fits: bool, digits: int) -> str:
    """U with that many digits; in words if these would hide that it is above m.

    >>> readable(1.000000000001, 1, fits=False, digits=2)
    'just above 1'
    """
    if not fits and round(utilization, digits) <= tracks:
        return f"just above {tracks}"
    return f"{utilization:.{digits}f}"


def fits(costs: Sequence[int], periods: Sequence[int], tracks: int) -> bool:
    """Whether U ≤ m exactly (paper 004, condition (9)).

    >>> fits([1, 1, 1], [3, 3, 3], 1)
    True
    """
    return bracketed_sum(costs, periods).at_most(tracks)


def tracks_at_least(costs: Sequence[int], periods: Sequence[int]) -> int:
    """⌈U⌉ exactly: fewer tracks cannot carry the tasks (paper 004, section 4.2: a cluster's m(C)).

    >>> tracks_at_least([1, 1, 1], [3, 3, 3])
    1
    """
    return bracketed_sum(costs, periods).ceiling()
