"""Clusters of tasks with similar costs, each on tracks of its own (paper 004, section 4.2 and figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from heapq import heapify, heapreplace
from itertools import accumulate
from random import Random

from freshline.planning.analysis.exact import BracketedRational, exact_sum, scaled_quotients
from freshline.planning.analysis.kmeans import Centers, SortedCosts, initial_centers, refinements


@dataclass(frozen=True, slots=True)
class Cluster:
    """Tasks, by their place in the task set, and the tracks that they share with no other cluster."""

    members: tuple[int, ...]
    tracks: int


@dataclass(frozen=True, slots=True)
class KMeansRow:
    """An iteration of figure 4's inner loop, as a row of paper 004's Table 1: centers, then clusters."""

    centers: tuple[Fraction, ...]
    clusters: tuple[tuple[int, ...], ...]


def construct_clusters(
    costs: Sequence[int], periods: Sequence[int], tracks: int, seed: int = 0
) -> list[Cluster] | None:
    """The clusters of paper 004's CONSTRUCT-CLUSTERS (figure 4), cheapest tasks first; `None` if U > m.

    K goes from m down (from the number of different costs if that is smaller) until the clusters' ⌈U⌉
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
        of_clusters = [loads.of(span) for span in spans]
        least = [load.ceiling() for load in of_clusters]
        if sum(least) <= tracks:
            counts = hand_out(tracks - sum(least), least, of_clusters)
            return [Cluster(ordered.tasks(span), count) for span, count in zip(spans, counts, strict=True)]
    return None


def table(costs: Sequence[int], centers: Sequence[int]) -> list[KMeansRow]:
    """The iterations of figure 4 from given centers, until they change no more (paper 004, Table 1)."""
    ordered = SortedCosts(costs)
    start: Centers = [(center, 1) for center in sorted(set(centers))]
    return [
        KMeansRow(
            tuple(Fraction(*center) for center in reached), tuple(ordered.tasks(span) for span in spans)
        )
        for reached, spans in refinements(ordered, start)
    ]


class _Loads:
    """The utilisation of any run of tasks in the order of their costs."""

    def __init__(self, ordered: SortedCosts, costs: Sequence[int], periods: Sequence[int]) -> None:
        self._costs = [costs[task] for task in ordered.order]
        self._periods = [periods[task] for task in ordered.order]
        self._sums = [0, *accumulate(scaled_quotients(self._costs, self._periods))]

    def of(self, span: tuple[int, int]) -> BracketedRational:
        start, end = span
        low = self._sums[end] - self._sums[start]
        exactly = cache(lambda: exact_sum(self._costs[start:end], self._periods[start:end]))
        return BracketedRational(low, low + end - start, exactly)


def hand_out(left_over: int, counts: Sequence[int], loads: Sequence[BracketedRational]) -> list[int]:
    """The tracks of each cluster, with those left over: one by one, each to the cluster of highest U/m(C).

    The first cluster wins a tie. Let λ be the U/m(C) of the last track given. No cluster ends above λ, and
    those that got any were above it one track earlier. Added up, each ends with at least
    U·(left over − clusters)/ΣU. So many are given at once, and only the few others one by one.
    """
    if left_over == 0:
        return list(counts)
    ahead, total = max(0, left_over - len(counts)), sum(load.high for load in loads)
    given = [max(count, load.low * ahead // total) for count, load in zip(counts, loads, strict=True)]
    heap = [_Place(load, count, at) for at, (load, count) in enumerate(zip(loads, given, strict=True))]
    heapify(heap)
    for _ in range(left_over + sum(counts) - sum(given)):
        fullest = heap[0]
        heapreplace(heap, _Place(fullest.load, fullest.tracks + 1, fullest.at))
    return [place.tracks for place in sorted(heap, key=lambda place: place.at)]


@dataclass(frozen=True, slots=True)
class _Place:
    """A cluster's place in the order in which tracks are handed out, the fullest first."""

    load: BracketedRational
    tracks: int
    at: int

    def __lt__(self, other: _Place) -> bool:
        if self.load.exceeds(other.load, self.tracks, other.tracks):
            return True
        return self.at < other.at and not other.load.exceeds(self.load, other.tracks, self.tracks)
