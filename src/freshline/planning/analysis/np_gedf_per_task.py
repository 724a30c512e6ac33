"""Non-preemptive global EDF on m tracks: a bound for each task, never above the one of `np_gedf`.

Let σ satisfy m·σ ≥ m·Σ_{A∪B} e_j + Σ_A u_j·(σ − e_j) for all disjoint sets A, B of tasks with |A| ≤ m − 1 and
|A| + |B| ≤ m. If U ≤ m and every e is at most its period, then every job of task i finishes by its deadline
+ x_i + e_i, with x_i = (σ − e_i)/m.

This is paper 001's Theorem 1 with an x for each task, as in the compliant vectors of preemptive EDF. σ bounds
the work left at a deadline, A are the tasks that carry late work in, B those that block with a job due later.
If batches may block (docs/batches.md), max(e_j, blocking) replaces e_j in the sum over B. The proof is in
docs/np-gedf-per-task.md. It covers releases further apart than the period, costs below e, any order of equal
deadlines, and a track that finds no released job and starts one early, with its deadline kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import gt

from freshline.planning.analysis.exact import (
    SCALE,
    SCALE_BITS,
    BracketedRational,
    ceiling_of,
    exact_sum,
    largest,
    scaled_quotients,
)
from freshline.planning.analysis.utilization import tracks_at_least


class NpGedfPerTask:
    """The per-task bound of a task set, for every number of tracks below the number of tasks.

    >>> NpGedfPerTask([128, 128, 1, 1], [256, 256, 8, 8]).tardiness(2)
    [214, 214, 150, 150]
    """

    def __init__(self, costs: Sequence[int], periods: Sequence[int], blocking: int = 0) -> None:
        self._costs = costs
        self._batch = blocking
        self._blocking = [max(cost, blocking) for cost in costs]
        self._blocking_max = max(self._blocking)
        self._periods = periods
        self._some_cost_exceeds_its_period = any(map(gt, costs, periods))
        self._tracks_at_least = tracks_at_least(costs, periods)
        by_cost = sorted(range(len(costs)), key=costs.__getitem__, reverse=True)
        rates = scaled_quotients(costs, periods)
        squares = scaled_quotients([cost * cost for cost in costs], periods)
        self._rates, self._squares = rates, squares
        self._cost_sums = [0, *accumulate(costs[task] for task in by_cost)]
        self._rate_sums = [0, *accumulate(rates[task] for task in by_cost)]
        self._square_sums = [0, *accumulate(squares[task] for task in by_cost)]

    def tardiness(self, tracks: int) -> list[int] | None:
        """x_i + e_i of every task, rounded up; `None` if U > m or some e is above its period."""
        if tracks < self._tracks_at_least or self._some_cost_exceeds_its_period:
            return None
        work = self.work_left(tracks)
        return [ceiling_of(work - cost, tracks) + cost for cost in self._costs]

    def work_left(self, tracks: int) -> int:
        """The least σ, rounded up: the most work that can be left at a deadline, including jobs that block.

        The right side is convex and piecewise linear in σ, of slope below m. So the solution for any one
        choice of A and B is at most σ; the heaviest choice at one σ gives the next (Newton's method).
        """
        assert 1 <= tracks < len(self._costs), "with a track for each task nothing waits"
        work = self.work_left_at_least(tracks)
        while True:
            demands = self._heaviest(tracks, work)
            if all(demand.at_most(tracks * work) for _, _, demand in demands):
                return work
            solutions = [self._work_of(tracks, carriers, others) for carriers, others, _ in demands]
            work = max(work + 1, *solutions)

    def less_blocking(self, tracks: int, work: int) -> int | None:
        """If this σ is too small: a shorter blocking that may suit it; no longer one does.

        None if σ is large enough. The right side is convex in the blocking: the choice that is too heavy
        gives the least excess (Newton's method).
        """
        answers: list[int] = []
        for _, others, demand in self._heaviest(tracks, work):
            if not demand.at_most(tracks * work):
                raised = [task for task in others if self._costs[task] < self._blocking[task]]
                if not raised:
                    return -1
                above = ceiling_of(demand.low - tracks * work * SCALE, tracks * len(raised) * SCALE)
                answers.append(self._batch - max(1, above))
        return min(answers, default=None)

    def work_left_at_least(self, tracks: int) -> int:
        """A quick lower bound of σ: that of the costliest tasks. It rules out most numbers of tracks."""
        solution = _solution_at_least(
            tracks,
            self._cost_sums[tracks],
            self._rate_sums[tracks - 1],
            self._square_sums[tracks - 1] + tracks - 1,
        )
        return max(self._blocking_max, solution)

    def _work_of(self, tracks: int, carriers: Sequence[int], others: Sequence[int]) -> int:
        """σ for one choice, rounded up, or slightly less."""
        return _solution_at_least(
            tracks,
            self._cost_of(carriers, others),
            sum(self._rates[task] for task in carriers),
            sum(self._squares[task] for task in carriers) + len(carriers),
        )

    def _cost_of(self, carriers: Sequence[int], others: Sequence[int]) -> int:
        return sum(self._costs[task] for task in carriers) + sum(self._blocking[task] for task in others)

    def _heaviest(self, tracks: int, work: int) -> list[tuple[list[int], list[int], BracketedRational]]:
        """One or two choices of A (at most m − 1 tasks) and B with their weights, the heaviest among them.

        A task weighs m·e_j + u_j·(σ − e_j) if it carries and m·max(e_j, blocking) if it blocks. The m tasks
        of largest weight are chosen, each in its heavier role. If all of them would carry, there are two
        choices: the one that loses least blocks, or the heaviest other blocker replaces the lightest.
        """
        costs, periods, blocking = self._costs, self._periods, self._blocking

        def exactly_carried(task: int) -> Fraction:
            return Fraction(costs[task] * (work - costs[task]), periods[task])

        def exactly(task: int) -> Fraction:
            if blocks[task]:
                return Fraction(tracks * blocking[task])
            return tracks * costs[task] + exactly_carried(task)

        def loss(task: int) -> tuple[int, Fraction]:
            blocked = tracks * blocking[task]
            return weights[task] - blocked * SCALE, exactly(task) - blocked

        blocks = [
            e * (work - e) < tracks * (b - e) * p for e, p, b in zip(costs, periods, blocking, strict=True)
        ]
        carried = [(e * (work - e) << SCALE_BITS) // p for e, p in zip(costs, periods, strict=True)]
        weights = [
            tracks * (b if blocked else e) * SCALE + (0 if blocked else c)
            for e, b, c, blocked in zip(costs, blocking, carried, blocks, strict=True)
        ]
        chosen = largest(tracks, weights, exactly)
        carriers = [task for task in chosen if not blocks[task]]
        if len(carriers) < tracks:
            others = [task for task in chosen if blocks[task]]
            return [self._weighed(tracks, work, carried, carriers, others)]
        lightest = min(chosen, key=lambda task: (weights[task], exactly(task)))
        least_lost = min(chosen, key=loss)
        heaviest = max(set(range(len(costs))).difference(chosen), key=blocking.__getitem__)
        return [
            self._weighed(tracks, work, carried, [task for task in chosen if task != left_out], [other])
            for left_out, other in ((least_lost, least_lost), (lightest, heaviest))
        ]

    def _weighed(
        self, tracks: int, work: int, carried: Sequence[int], carriers: list[int], others: list[int]
    ) -> tuple[list[int], list[int], BracketedRational]:
        whole = tracks * self._cost_of(carriers, others)
        low = whole * SCALE + sum(carried[task] for task in carriers)
        numerators = [self._costs[task] * (work - self._costs[task]) for task in carriers]

        def exactly() -> tuple[int, int]:
            numerator, denominator = exact_sum(numerators, [self._periods[task] for task in carriers])
            return numerator + whole * denominator, denominator

        return carriers, others, BracketedRational(low, low + len(carriers), exactly)


def _solution_at_least(tracks: int, cost: int, rate_scaled: int, squares_scaled: int) -> int:
    """⌈(m·Σe − Σ_A e²/p) / (m − Σ_A u)⌉ or less, from Σu rounded down and Σe²/p rounded up."""
    return ceiling_of(tracks * cost * SCALE - squares_scaled, tracks * SCALE - rate_scaled)
