"""What few continuous queries ask for, in lists: faster than arrays as long as these are short."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, inf
from operator import mul, truediv

from freshline.analysis.demand import loss_us, reduction_ratio
from freshline.analysis.levels import Load, blocking_us
from freshline.analysis.scheduling_points import bini_buttazzo, decisive_levels, scheduling_points


class DemandOfFew:
    """All points of all levels."""

    def __init__(self, ordered: Sequence[Load]) -> None:
        periods = tuple([load.period_us for load in ordered])
        deadlines = tuple([load.deadline_us for load in ordered])
        self.steps: Sequence[int] = range(len(ordered))
        self._instants, self._reach = scheduling_points(periods, deadlines)
        self._releases, self._at = _releases(periods, self._instants)
        self._enough = _enough(periods, deadlines, self._instants)
        self._blocking = blocking_us(ordered)
        self._full = [load.cost_us for load in ordered]
        self._least = [load.least_us for load in ordered]
        self._ratio = [reduction_ratio(load) for load in ordered]
        self._loss = [loss_us(load) for load in ordered]
        self._orders: list[list[int] | None] = [None] * len(self._instants)
        self.restart()

    def restart(self) -> None:
        self.lost = 0.0
        self._costs = self._full.copy()
        self._room = [0] * len(self._full)  # what can still be cut; of those that are not yet in nothing
        self._asked = [-instant for instant in self._instants]  # Σ n_j·E_j − t

    def enter(self, level: int) -> list[int]:
        cost_us = self._costs[level]
        self._room[level] = cost_us - self._least[level]
        self._ask(level, cost_us)
        asked, blocking_us = self._asked[: self._reach[level]], self._blocking[level]
        return [each + blocking_us for each in asked] if blocking_us else asked

    def cut_in_proportion(self, level: int, point: int, overrun_us: int) -> bool:
        releases, ratio = self._at[point], self._ratio
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
        """What a float was too small by."""
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
        for point in self._enough[level]:
            releases, left, error = self._at[point], overruns_us[point], 0.0
            cuts = []
            for query in self._orders[point] or self._order(point):
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

    def _order(self, point: int) -> list[int]:
        """All queries by what they lose for the time that they free down to a point."""
        loss = list(map(truediv, self._loss, self._at[point]))
        order = self._orders[point] = sorted(range(len(loss)), key=loss.__getitem__)
        return order

    def cut_to_least(self, level: int) -> None:
        self._cut({query: room for query, room in enumerate(self._room) if room})

    def costs_us(self) -> list[int]:
        return self._costs

    def _cut(self, cuts: dict[int, int]) -> None:
        for query, cut in cuts.items():
            self._costs[query] -= cut
            self._room[query] -= cut
            self.lost += self._loss[query] * cut
            self._ask(query, -cut)

    def _ask(self, query: int, cost_us: int) -> None:
        """So much more at every release of a query."""
        self._asked = [
            asked + releases * cost_us
            for asked, releases in zip(self._asked, self._releases[query], strict=True)
        ]


def stretch_of_few(ordered: Sequence[Load]) -> tuple[int, int]:
    """The largest factor by which all costs can grow until a level is full, as a quotient."""
    periods = tuple([load.period_us for load in ordered])
    deadlines = tuple([load.deadline_us for load in ordered])
    instants, reach = scheduling_points(periods, deadlines)
    releases, _ = _releases(periods, instants)
    blocking = blocking_us(ordered)
    decisive = decisive_levels(deadlines, blocking)
    asked = [0] * len(instants)
    least = (1, 0)
    for level, load in enumerate(ordered):
        asked = [each + of_it * load.cost_us for each, of_it in zip(asked, releases[level], strict=True)]
        if level in decisive:
            waited = blocking[level]
            left = [instant - waited for instant in instants[: reach[level]]] if waited else instants
            factors = list(map(truediv, left[: reach[level]], asked))
            point = factors.index(max(factors))
            if left[point] * least[1] < least[0] * asked[point]:
                least = left[point], asked[point]
    return least


@lru_cache(maxsize=32)
def _releases(
    periods: tuple[int, ...], instants: tuple[int, ...]
) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """⌈t/P⌉ by query at each instant, and at each instant by query."""
    releases = [[-(-instant // period) for instant in instants] for period in periods]
    return releases, list(zip(*releases, strict=True))


@lru_cache(maxsize=32)
def _enough(
    periods: tuple[int, ...], deadlines: tuple[int, ...], instants: tuple[int, ...]
) -> list[list[int]]:
    """By level, the points that decide it, from the deadline back: no other can have a lower error."""
    number = {instant: point for point, instant in enumerate(instants)}
    return [
        [
            number[instant]
            for instant in reversed(bini_buttazzo(level, periods, deadlines))
            if instant in number
        ]
        for level in range(len(periods))
    ]
