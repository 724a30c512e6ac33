"""Paper 001's adaptable task model: recovery periods, tardiness while periods change, time to recover."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import gt

from freshline.planning.analysis.exact import SCALE, SCALE_BITS, bracketed_sum, ceiling_of
from freshline.planning.analysis.np_gedf import NpGedf


def fastest_recovery_periods(costs: Sequence[int], periods: Sequence[int], tracks: int) -> list[int]:
    """p^[r] = e / min(1, m − U + u): each task may recover alone, as fast as (6) allows.

    Paper 001's (7), with min where the print has max: otherwise (6) would let no table recover. It is rounded
    up to whole units, and is the normal period if nothing is spare.

    >>> fastest_recovery_periods([1000, 1000], [3000, 3000], 1)
    [1500, 1500]
    """
    load = bracketed_sum(costs, periods)
    if not load.at_most(tracks):
        return list(periods)
    # The interval nearly always decides; only otherwise is the exact sum computed.
    return [
        _rounded(cost, period, tracks * SCALE - load.high, tracks * SCALE - load.low)
        or _exactly(cost, period, tracks, load.exactly())
        for cost, period in zip(costs, periods, strict=True)
    ]


def _rounded(cost: int, period: int, spare_least: int, spare_most: int) -> int | None:
    """The recovery period, if the least and the most spare capacity give the same."""
    share = (cost << SCALE_BITS) // period
    longest = ceiling_of(cost << SCALE_BITS, max(1, min(SCALE, spare_least + share)))
    shortest = ceiling_of(cost << SCALE_BITS, max(1, min(SCALE, spare_most + share + 1)))
    return _within(cost, period, longest) if longest == shortest else None


def _exactly(cost: int, period: int, tracks: int, load: tuple[int, int]) -> int:
    share = min(Fraction(1), tracks - Fraction(*load) + Fraction(cost, period))
    return _within(cost, period, ceiling_of(cost * share.denominator, share.numerator))


def _within(cost: int, period: int, recovery_period: int) -> int:
    """In [e, p], as Definition 10 requires."""
    return min(period, max(cost, recovery_period))


def common_recovery_periods(costs: Sequence[int], periods: Sequence[int], tracks: int) -> list[int]:
    """max(e, p·U/m): all tasks may recover at once, for then Σ e/p^[r] ≤ m (paper 001, section III).

    >>> common_recovery_periods([1000, 1000], [3000, 3000], 1)
    [2000, 2000]
    """
    load = bracketed_sum(costs, periods)
    if not load.at_most(tracks):
        return list(periods)
    # A value slightly above U gives slightly slower recovery, never too fast.
    return [
        _within(cost, period, ceiling_of(period * load.high, tracks * SCALE))
        if ceiling_of(period * load.high, tracks * SCALE) == ceiling_of(period * load.low, tracks * SCALE)
        else _within(cost, period, _common_exactly(period, tracks, load.exactly()))
        for cost, period in zip(costs, periods, strict=True)
    ]


def _common_exactly(period: int, tracks: int, load: tuple[int, int]) -> int:
    return ceiling_of(period * load[0], tracks * load[1])


def adaptive_tardiness(
    costs: Sequence[int],
    periods: Sequence[int],
    recovery_periods: Sequence[int],
    tracks: int,
    blocking: int = 0,
) -> list[int] | None:
    """Y_i of paper 001's Theorem 1 with W = e / p^[r], rounded up; all 0 with no more tasks than tracks.

    `None` if U > m or some e is above its period. (The tighter bound for each task is proven only for
    constant periods.)
    """
    if any(map(gt, costs, periods)):
        return None
    if len(costs) <= tracks:
        return [0] * len(costs)
    x = NpGedf(costs, periods, recovery_periods, blocking).x(tracks)
    return None if x is None else [cost + ceiling_of(x.numerator, x.denominator) for cost in costs]


def recovery_time(
    response: int, period: int, recovery_period: int, outage: int, jitter: int = 0
) -> int | None:
    """x of paper 001's Theorem 4: how long clearing the backlog of an outage takes at most, rounded up.

    It counts from the first release with the recovery period. `None` if that period is not shorter than the
    normal one: then nothing is promised.

    >>> recovery_time(448, 300, 58, 5000)
    1826
    """
    if recovery_period >= period:
        return None
    work = response * period + (outage + jitter + period) * recovery_period
    return ceiling_of(work, period - recovery_period)
