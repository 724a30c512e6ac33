"""Clusters of tasks with similar costs, each on tracks of its own (paper 004, section 4.2 and figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from random import Random

from freshline.analysis.exact import Bracketed, exact_sum, scaled_quotients
from freshline.analysis.kmeans import Centers, SortedCosts, initial_centers, refinements


@dataclass(frozen=True, slots=True)
class Cluster:
    """Tasks, by their place in the task set, and the tracks that they share with no other cluster."""

    members: tuple[int, ...]
    tracks: int


@dataclass(frozen=True, slots=True)
class Row:
    """An iteration of figure 4's inner loop, as a row of paper 004's Table 1: centers, then clusters."""

    centers: tuple[Fraction, ...]
    clusters: tuple[tuple[int, ...], ...]


def construct_clusters(
    costs: Sequence[int], periods: Sequence[int], tracks: int, seed: int = 0
) -> list[Cluster] | None:
    """The clusters of paper 004's CONSTRUCT-CLUSTERS (figure 4), cheapest tasks first; `None` where U > m.

    K goes from m down (from the number of different costs where that is smaller) until the clusters' ⌈U⌉
    add up to no more than m, condition (10); for each K the centers are drawn anew. Figure 4 assigns no
    cluster to a task halfway between two centers; as in its Table 1 the lower one gets it. Clusters that
    lose all their tasks are dropped. Tracks left over go one by one to the cluster of highest U/m(C), the
    first on a tie.
    """
    ordered = SortedCosts(costs)
    loads = _Loads(ordered, costs, periods)
    random = Random(seed)
    for count in range(min(tracks, len(set(costs))), 0, -1):
        *_, (_, spans) = refinements(ordered, initial_centers(ordered, count, random))
        shares = [loads.of(span).ceiling() for span in spans]
        if sum(shares) <= tracks:
            _hand_out(tracks - sum(shares), shares, [loads.of(span) for span in spans])
            return [Cluster(ordered.tasks(span), share) for span, share in zip(spans, shares, strict=True)]
    return None


def table(costs: Sequence[int], centers: Sequence[int]) -> list[Row]:
    """The iterations of figure 4 from given centers, until they change no more (paper 004, Table 1)."""
    ordered = SortedCosts(costs)
    start: Centers = [(center, 1) for center in sorted(set(centers))]
    return [
        Row(tuple(Fraction(*center) for center in reached), tuple(ordered.tasks(span) for span in spans))
        for reached, spans in refinements(ordered, start)
    ]


class _Loads:
    """The utilisation of any run of tasks in the order of their costs."""

    def __init__(self, ordered: SortedCosts, costs: Sequence[int], periods: Sequence[int]) -> None:
        self._costs = [costs[task] for task in ordered.order]
        self._periods = [periods[task] for task in ordered.order]
        self._sums = [0, *accumulate(scaled_quotients(self._costs, self._periods))]

    def of(self, span: tuple[int, int]) -> Bracketed:
        start, end = span
        low = self._sums[end] - self._sums[start]
        exactly = cache(lambda: exact_sum(self._costs[start:end], self._periods[start:end]))
        return Bracketed(low, low + end - start, exactly)


def _hand_out(left_over: int, shares: list[int], loads: Sequence[Bracketed]) -> None:
    for _ in range(left_over):
        fullest = 0
        for at in range(1, len(shares)):
            if loads[at].exceeds(loads[fullest], shares[at], shares[fullest]):
                fullest = at
        shares[fullest] += 1
