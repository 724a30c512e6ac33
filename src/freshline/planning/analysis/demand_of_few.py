"""The demand of few continuous queries, in lists: faster than arrays while these are short."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from math import ceil, inf
from operator import add, mul, sub
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshline.planning.analysis.demand import loss_us, reduction_ratio
from freshline.planning.analysis.levels import QueryLoad, blocking_us
from freshline.planning.analysis.scheduling_points import bini_buttazzo, decisive_levels, scheduling_points


class DemandOfFew:
    """All points of all levels."""

    def __init__(self, ordered: Sequence[QueryLoad]) -> None:
        periods = tuple([load.period_us for load in ordered])
        deadlines = tuple([load.deadline_us for load in ordered])
        self._grid = _grid(periods, deadlines)
        self._blocking = blocking_us(ordered)
        self._full = [load.cost_us for load in ordered]
        self._least = [load.least_us for load in ordered]
        self._ratio = [reduction_ratio(load) for load in ordered]
        self._loss = [loss_us(load) for load in ordered]
        self._orders: list[list[int]] = []
        # The last level that entered, and the demand before it; also those of the first cut.
        self._before = self._first_cut = 0, [-instant for instant in self._grid.instants]
        self.restart()

    def restart(self) -> None:
        """Levels above the first cut held at full costs, so they are skipped."""
        level, asked = self._first_cut
        self.steps: Sequence[int] = range(level, len(self._full))
        self.lost = 0.0
        self._costs = self._full.copy()
        # What can still be cut; 0 for queries that have not entered.
        room = map(sub, self._full[:level], self._least)
        self._room = [*room, *[0] * (len(self._full) - level)]
        self._asked = asked  # Σ n_j·E_j − t

    def enter(self, level: int) -> list[int]:
        self._before = level, self._asked
        cost_us = self._costs[level]
        self._room[level] = cost_us - self._least[level]
        self._ask(level, cost_us)
        asked, blocking_us = self._asked[: self._grid.reach[level]], self._blocking[level]
        return [each + blocking_us for each in asked] if blocking_us else asked

    def cut_in_proportion(self, level: int, point: int, overrun_us: int) -> bool:
        releases, ratio = self._grid.at[point], self._ratio
        room = list(map(mul, releases, self._room))
        if sum(room) < overrun_us:
            return False
        cuts: dict[int, int] = {}
        left, share = overrun_us, 0.0
        sharing = [query for query, most in enumerate(room) if most]
        while sharing:
            share = left / sum([ratio[query] for query in sharing])
            emptied = [query for query in sharing if share * ratio[query] >= room[query]]
            if not emptied:
                break
            for query in emptied:
                cuts[query] = self._room[query]
                left -= room[query]
            sharing = [query for query in sharing if query not in cuts]
        for query in sharing:
            cuts[query] = min(self._room[query], ceil(share * ratio[query] / releases[query]))
        self._fill_up(cuts, releases, overrun_us)
        self._cut(cuts)
        return True

    def _fill_up(self, cuts: dict[int, int], releases: Sequence[int], overrun_us: int) -> None:
        """Adds what the floats were too small by."""
        short = overrun_us - sum([releases[query] * cut for query, cut in cuts.items()])
        for query, cut in cuts.items():
            if short <= 0:
                return
            more = min(self._room[query] - cut, -(-short // releases[query]))
            cuts[query] += more
            short -= more * releases[query]

    def cut_cheapest(self, level: int, overruns_us: Sequence[int]) -> bool:
        best, best_cuts = inf, None
        room, loss = self._room, self._loss
        if not self._orders:
            # For each point, all queries by their loss per time freed.
            self._orders = np.argsort(np.array(loss) / self._grid.at_array, axis=1, kind="stable").tolist()
        for point in self._grid.enough[level]:
            releases, left, error = self._grid.at[point], overruns_us[point], 0.0
            cuts = []
            for query in self._orders[point]:
                most = room[query]
                if not most:
                    continue
                cut = -(-left // releases[query])
                if cut > most:
                    cut = most
                error += loss[query] * cut
                if error >= best:
                    break
                cuts.append((query, cut))
                left -= releases[query] * cut
                if left <= 0:
                    best, best_cuts = error, cuts
                    break
        if best_cuts is None:
            return False
        self._cut(dict(best_cuts))
        return True

    def cut_to_least(self, level: int) -> None:
        self._cut({query: room for query, room in enumerate(self._room) if room})

    def costs_us(self) -> list[int]:
        return self._costs

    def _cut(self, cuts: dict[int, int]) -> None:
        if not self.lost and self._costs == self._full:
            self._first_cut = self._before
        for query, cut in cuts.items():
            self._costs[query] -= cut
            self._room[query] -= cut
            self.lost += self._loss[query] * cut
            self._ask(query, -cut)

    def _ask(self, query: int, cost_us: int) -> None:
        """Adds that cost at every release of a query."""
        self._asked = _more(self._asked, self._grid.releases[query], cost_us)


def _more(asked: list[int], releases: list[int], cost_us: int) -> list[int]:
    """The demand at each point plus a cost for each release up to it."""
    return list(map(add, asked, map(mul, releases, repeat(cost_us))))


def stretch_of_few(ordered: Sequence[QueryLoad], costs_us: Sequence[int]) -> tuple[int, int]:
    """The largest factor by which all costs can grow until a level is full, as a quotient."""
    periods = tuple([load.period_us for load in ordered])
    deadlines = tuple([load.deadline_us for load in ordered])
    instants, _, releases, _, _, enough = _grid(periods, deadlines)
    blocking = blocking_us(ordered)
    decisive = decisive_levels(deadlines, blocking)
    asked = [0] * len(instants)
    least = (1, 0)
    for level, cost_us in enumerate(costs_us):
        asked = _more(asked, releases[level], cost_us)
        if level in decisive:
            waited, points = blocking[level], enough[level]
            factors = [(instants[point] - waited) / asked[point] for point in points]
            point = points[factors.index(max(factors))]
            left = instants[point] - waited
            if left * least[1] < least[0] * asked[point]:
                least = left, asked[point]
    return least


class _Grid(NamedTuple):
    """All that depends only on strides and deadlines. Points are numbered by time."""

    instants: tuple[int, ...]
    reach: tuple[int, ...]  # by level: the number of points up to its deadline
    releases: list[list[int]]  # ⌈t/P⌉ by query and point
    at: list[tuple[int, ...]]  # by point and query
    at_array: NDArray[np.float64]
    enough: list[list[int]]  # by level: the points that decide it; no other can have a lower error


@lru_cache(maxsize=32)
def _grid(periods: tuple[int, ...], deadlines: tuple[int, ...]) -> _Grid:
    instants, reach = scheduling_points(periods, deadlines)
    releases = [[-(-instant // period) for instant in instants] for period in periods]
    at = list(zip(*releases, strict=True))
    number = {instant: point for point, instant in enumerate(instants)}
    # From the deadline back: ties go to the later point.
    enough = [
        [
            number[instant]
            for instant in reversed(bini_buttazzo(level, periods, deadlines))
            if instant in number
        ]
        for level in range(len(periods))
    ]
    return _Grid(instants, reach, releases, at, np.array(at, np.float64), enough)
