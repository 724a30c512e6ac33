"""Preemptive global EDF on m tracks, for comparison: the price of non-preemptive updates.

Both bounds need U ≤ m and every e at most its period; otherwise they are `None`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import nlargest
from operator import gt

from freshline.planning.analysis.exact import SCALE, Quotient, bracketed_sum, exact_sum


def devi_anderson(costs: Sequence[int], periods: Sequence[int], tracks: int) -> list[Fraction] | None:
    """Tardiness of at most x + e_i (Devi and Anderson 2005).

    x = (sum of the Λ largest e − e_min) / (m − sum of the Λ−1 largest u), Λ = ⌈U⌉ − 1; 0 if U ≤ 1.
    """
    blockers = _blockers(costs, periods, tracks)
    if blockers is None:
        return None
    if blockers == 0:
        return [Fraction(0)] * len(costs)
    rates = [Fraction(cost, period) for cost, period in zip(costs, periods, strict=True)]
    carried = nlargest(blockers - 1, rates)
    numerator, denominator = exact_sum([u.numerator for u in carried], [u.denominator for u in carried])
    excess = sum(nlargest(blockers, costs)) - min(costs)
    x = Fraction(excess * denominator, tracks * denominator - numerator)
    return [x + cost for cost in costs]


def compliant_vector(costs: Sequence[int], periods: Sequence[int], tracks: int) -> list[Fraction] | None:
    """Response times of at most s − e_i/m + e_i + p_i − p_min (Erickson, Guan and Baruah 2010).

    s solves m·s = ΣS + the k largest (e_j − S_j − e_j·u_j/m + u_j·s), with S_j = e_j·p_min/p_j and
    k = ⌈U⌉ − 1: moving all priority points by p_min changes no schedule and makes the bound tighter.

    The right side is convex and piecewise linear in s, of slope at most k < m. Taking the k largest at one s
    and solving the linear equation for them gives the next s (Newton's method). These only grow, and as there
    are finitely many choices of k tasks they end at the solution, exactly.

    >>> compliant_vector([1, 1, 1], [2, 2, 2], 2)
    [Fraction(7, 3), Fraction(7, 3), Fraction(7, 3)]
    """
    blockers = _blockers(costs, periods, tracks)
    if blockers is None:
        return None
    sigma = _solution(costs, periods, tracks, range(blockers))
    while True:
        chosen = _k_largest(costs, periods, tracks, blockers, sigma)
        larger = _solution(costs, periods, tracks, chosen)
        if larger[0] * sigma[1] == sigma[0] * larger[1]:
            break
        sigma = larger
    s = Fraction(sigma[0], sigma[1] * tracks)
    period_min = min(periods)
    return [
        s + Fraction(cost * (tracks - 1), tracks) + period - period_min
        for cost, period in zip(costs, periods, strict=True)
    ]


def _blockers(costs: Sequence[int], periods: Sequence[int], tracks: int) -> int | None:
    """⌈U⌉ − 1: how many tasks may carry work into an interval with all tracks busy."""
    tracks_at_least = bracketed_sum(costs, periods).ceiling()
    if tracks_at_least > tracks or any(map(gt, costs, periods)):
        return None
    return tracks_at_least - 1


# Written with σ = m·s and h_j = m·(p_j − p_min) − e_j, m times the j-th of the k largest terms is
# e_j·(σ + h_j)/p_j, and m·ΣS is m·p_min·U: no quotient but those by p_j is left.


def _solution(costs: Sequence[int], periods: Sequence[int], tracks: int, chosen: Sequence[int]) -> Quotient:
    """σ for these k tasks: σ·(m − Σ u_j) = m·p_min·U + Σ e_j·h_j/p_j."""
    period_min = min(periods)
    constants = [tracks * period_min * cost for cost in costs]
    for task in chosen:
        constants[task] += costs[task] * _headroom(costs[task], periods[task], tracks, period_min)
    constant = exact_sum(constants, periods)
    slope = exact_sum([costs[task] for task in chosen], [periods[task] for task in chosen])
    return constant[0] * slope[1], constant[1] * (tracks * slope[1] - slope[0])


def _k_largest(
    costs: Sequence[int], periods: Sequence[int], tracks: int, count: int, sigma: Quotient
) -> list[int]:
    """The tasks with the k largest e_j·(σ + h_j)/p_j, by scaled integers; the doubtful ones exactly."""
    if count == 0:
        return []
    period_min = min(periods)
    headrooms = [_headroom(e, p, tracks, period_min) for e, p in zip(costs, periods, strict=True)]
    sigma_scaled = sigma[0] * SCALE // sigma[1]
    # σ is too small by less than 1 and e ≤ p, and the quotient is rounded down: too small by less than 2.
    terms = [e * (sigma_scaled + h * SCALE) // p for e, p, h in zip(costs, periods, headrooms, strict=True)]
    threshold = nlargest(count, terms)[-1]
    certain = [task for task, term in enumerate(terms) if term >= threshold + 2]
    doubtful = [task for task, term in enumerate(terms) if threshold - 2 < term < threshold + 2]
    missing = count - len(certain)
    if len({(costs[task], periods[task]) for task in doubtful}) > 1:

        def exactly(task: int) -> Fraction:
            return Fraction(costs[task] * (sigma[0] + headrooms[task] * sigma[1]), periods[task])

        doubtful = nlargest(missing, doubtful, key=exactly)
    return certain + doubtful[:missing]


def _headroom(cost: int, period: int, tracks: int, period_min: int) -> int:
    return tracks * (period - period_min) - cost
