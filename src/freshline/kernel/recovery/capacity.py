"""How much of the tracks is allocated."""

from __future__ import annotations

from collections.abc import Mapping

from freshline.planning.analysis.exact import SCALE, SCALE_BITS, exact_sum


class Capacity:
    """The allocated share of the tracks, Σ e/p(T, t), and whether a change keeps it at most m (6)."""

    def __init__(self, shares: Mapping[str, tuple[int, int]], tracks: int) -> None:
        self._shares = dict(shares)  # by task: e and p(T, t)
        self._limit = tracks * SCALE
        self._tracks = tracks
        self._low = sum(_scaled(cost, period) for cost, period in self._shares.values())

    def __len__(self) -> int:
        return len(self._shares)

    def admits(self, task: str, cost: int, period: int) -> bool:
        low = self._low - _scaled(*self._shares[task]) + _scaled(cost, period)
        # Each share is rounded down by less than a unit.
        if low + len(self._shares) <= self._limit:
            return True
        if low > self._limit:
            return False
        shares = {**self._shares, task: (cost, period)}.values()
        numerator, denominator = exact_sum([cost for cost, _ in shares], [period for _, period in shares])
        return numerator <= self._tracks * denominator

    def period_us(self, task: str) -> int:
        """p(T, t)."""
        return self._shares[task][1]

    def set(self, task: str, cost: int, period: int) -> None:
        self._low += _scaled(cost, period) - _scaled(*self._shares[task])
        self._shares[task] = (cost, period)


def _scaled(cost: int, period: int) -> int:
    return (cost << SCALE_BITS) // period
