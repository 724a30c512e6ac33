"""K-means on costs, exactly: k-means++ for the first centers, then Lloyd's iterations (paper 004, figure 4).

On a line every cluster is a run of the sorted costs. With prefix sums an iteration over K clusters takes K
binary searches, however many tasks there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from random import Random

from freshline.planning.analysis.exact import Quotient

# Each center a quotient, ascending; each cluster a run [start, end) of the sorted costs.
Centers = list[Quotient]
Span = tuple[int, int]
Spans = list[Span]

# Any partition is valid, so stopping early costs only a little quality.
ITERATIONS_MAX = 1_000


class SortedCosts:
    """Costs in ascending order, with prefix sums over any run of them."""

    def __init__(self, costs: Sequence[int]) -> None:
        self.order = sorted(range(len(costs)), key=costs.__getitem__)
        self.costs = [costs[task] for task in self.order]
        self._sums = [0, *accumulate(self.costs)]
        self._squares = [0, *accumulate(cost * cost for cost in self.costs)]

    def tasks(self, span: Span) -> tuple[int, ...]:
        """The tasks of a run, in the order in which they were given."""
        return tuple(sorted(self.order[span[0] : span[1]]))

    def center(self, span: Span) -> Quotient:
        """The mean cost of a run."""
        start, end = span
        return self._sums[end] - self._sums[start], end - start

    def squared_distance(self, start: int, end: int, center: int) -> int:
        """Σ (e − center)² over a run."""
        total = self._sums[end] - self._sums[start]
        squares = self._squares[end] - self._squares[start]
        return squares - 2 * center * total + (end - start) * center * center

    def nearer_to_lower(self, lower: Quotient, upper: Quotient) -> int:
        """How many costs, from the smallest, belong to the lower of two centers, those halfway included."""
        doubled = lower[0] * upper[1] + upper[0] * lower[1]
        return bisect_right(self.costs, doubled // (2 * lower[1] * upper[1]))


def refinements(ordered: SortedCosts, centers: Centers) -> Iterator[tuple[Centers, Spans]]:
    """Each iteration's centers and clusters (figure 4, lines 3–10), until the clusters repeat."""
    before: Spans = []
    for _ in range(ITERATIONS_MAX):
        ends = [ordered.nearer_to_lower(lower, upper) for lower, upper in pairwise(centers)]
        spans = [span for span in pairwise([0, *ends, len(ordered.costs)]) if span[0] < span[1]]
        yield centers, spans
        if spans == before:
            return
        before = spans
        centers = [ordered.center(span) for span in spans]


def initial_centers(ordered: SortedCosts, count: int, random: Random) -> Centers:
    """The costs of K tasks drawn as in k-means++ (Arthur and Vassilvitskii 2007, section 2.2; figure 4,
    line 2).

    The first is drawn uniformly, each further one with a probability proportional to the square of its
    distance from the nearest center so far, so that all are different; there must be K different costs.
    """
    centers = [ordered.costs[random.randrange(len(ordered.costs))]]
    starts = [0, len(ordered.costs)]
    weights = [ordered.squared_distance(0, len(ordered.costs), centers[0])]
    for _ in range(count - 1):
        drawn = _draw(ordered, centers, starts, weights, random)
        at = bisect_right(centers, drawn)
        centers.insert(at, drawn)
        starts.insert(at, 0)
        weights.insert(at, 0)
        for upper in range(max(at, 1), min(at + 2, len(centers))):
            starts[upper] = ordered.nearer_to_lower((centers[upper - 1], 1), (centers[upper], 1))
        for near in range(max(at - 1, 0), min(at + 2, len(centers))):
            weights[near] = ordered.squared_distance(starts[near], starts[near + 1], centers[near])
    return [(center, 1) for center in centers]


def _draw(
    ordered: SortedCosts,
    centers: Sequence[int],
    starts: Sequence[int],
    weights: Sequence[int],
    random: Random,
) -> int:
    reached = list(accumulate(weights))
    ticket = random.randrange(reached[-1])
    near = bisect_right(reached, ticket)
    ticket -= reached[near] - weights[near]
    start, end = starts[near], starts[near + 1]

    def up_to(position: int) -> int:
        return ordered.squared_distance(start, position + 1, centers[near])

    return ordered.costs[start + bisect_right(range(start, end), ticket, key=up_to)]
