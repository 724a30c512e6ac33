"""The demand of many continuous queries, in arrays.

Up to a hundred queries, all points of every level are examined. Beyond that, levels of equal deadlines form a
group. Its points are the deadline and those that lose least time to releases still in progress. Fewer points
make no verdict wrong, only more careful.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshline.planning.analysis.demand import loss_us, reduction_ratio
from freshline.planning.analysis.levels import QueryLoad, blocking_us
from freshline.planning.analysis.scheduling_points import scheduling_points

QUERIES_LOOKED_AT_ALONE: Final = 100
POINTS_BEYOND: Final = 6

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class LevelGroup(NamedTuple):
    """Levels of one deadline that are examined together, and their points."""

    first: int
    last: int
    instants: Integers
    releases: Integers  # by point and query


class DemandOfMany:
    """Some points of some levels, or all of them."""

    def __init__(self, ordered: Sequence[QueryLoad]) -> None:
        periods = tuple([load.period_us for load in ordered])
        self._steps = steps_of(periods, tuple([load.deadline_us for load in ordered]))
        self.steps: Sequence[int] = range(len(self._steps))
        self._blocking = blocking_us(ordered)
        self._full = np.array([load.cost_us for load in ordered], np.int64)
        self._least = np.array([load.least_us for load in ordered], np.int64)
        self._ratio = np.array([reduction_ratio(load) for load in ordered])
        self._loss = np.array([loss_us(load) for load in ordered])
        self.restart()

    def restart(self) -> None:
        self.lost = 0.0
        self._costs = self._full.copy()

    def enter(self, level: int) -> list[int]:
        first, last, instants, releases = self._steps[level]
        asked = releases @ self._costs[: last + 1]
        overruns: list[int] = (asked - instants + self._blocking[first]).tolist()
        return overruns

    def cut_in_proportion(self, level: int, point: int, overrun_us: int) -> bool:
        step = self._steps[level]
        releases, ratio = step.releases[point], self._ratio[: step.last + 1]
        room = self._room(step)
        most = room * releases
        if int(most.sum()) < overrun_us:
            return False
        # The more room a query has for its share, the later it is emptied.
        order = np.argsort(most / ratio)
        emptied = np.concatenate(([0], np.cumsum(most[order])[:-1]))
        shares = (overrun_us - emptied) / np.cumsum(ratio[order][::-1])[::-1]
        fits = np.flatnonzero(shares * ratio[order] < most[order])
        cuts = room.copy()
        if len(fits):
            sharing = order[fits[0] :]
            of_each = np.ceil(shares[fits[0]] * ratio[sharing] / releases[sharing]).astype(np.int64)
            cuts[sharing] = np.minimum(room[sharing], of_each)
            self._fill_up(cuts, room, releases, overrun_us)
        self._cut(np.flatnonzero(cuts), cuts[cuts > 0])
        return True

    def _fill_up(self, cuts: Integers, room: Integers, releases: Integers, overrun_us: int) -> None:
        """Adds what the floats were too small by."""
        short = overrun_us - int(cuts @ releases)
        for query in np.flatnonzero(cuts < room) if short > 0 else ():
            more = min(int(room[query] - cuts[query]), -(-short // int(releases[query])))
            cuts[query] += more
            short -= more * int(releases[query])
            if short <= 0:
                return

    def cut_cheapest(self, level: int, overruns_us: Sequence[int]) -> bool:
        step = self._steps[level]
        room = self._room(step)
        (open_,) = np.nonzero(room)
        if not len(open_):
            return False
        releases = step.releases[:, open_]
        loss = self._loss[open_] / releases  # for the time freed
        least = loss.min(axis=1) * overruns_us
        best, best_cuts = inf, None
        for point in np.argsort(least, kind="stable").tolist():
            if least[point] >= best:
                break
            found = _cheapest(loss[point], room[open_], releases[point], overruns_us[point])
            if found is not None:
                error = float(self._loss[open_] @ found)
                if error < best:
                    best, best_cuts = error, found
        if best_cuts is None:
            return False
        self._cut(open_, best_cuts)
        return True

    def cut_to_least(self, level: int) -> None:
        step = self._steps[level]
        room = self._room(step)
        self._cut(np.flatnonzero(room), room[room > 0])

    def costs_us(self) -> list[int]:
        costs: list[int] = self._costs.tolist()
        return costs

    def _cut(self, queries: NDArray[np.intp], cuts: Integers) -> None:
        self._costs[queries] -= cuts
        self.lost += float(self._loss[queries] @ cuts)

    def _room(self, step: LevelGroup) -> Integers:
        return self._costs[: step.last + 1] - self._least[: step.last + 1]


def stretch_of_many(ordered: Sequence[QueryLoad], costs_us: Sequence[int]) -> tuple[int, int]:
    """The largest factor by which all costs can grow until a level is full, as a quotient."""
    periods = tuple([load.period_us for load in ordered])
    blocking = blocking_us(ordered)
    costs = np.array(costs_us, np.int64)
    least = (1, 0)
    for first, last, instants, releases in steps_of(periods, tuple([load.deadline_us for load in ordered])):
        asked = releases @ costs[: last + 1]
        left = instants - blocking[first]
        point = int(np.argmax(left / asked))
        if int(left[point]) * least[1] < least[0] * int(asked[point]):
            least = int(left[point]), int(asked[point])
    return least


def _cheapest(loss: Floats, room: Integers, releases: Integers, overrun_us: int) -> Integers | None:
    """The cuts if the queries that lose least go first; None if they lack the room."""
    order = np.argsort(loss, kind="stable")
    freed = np.cumsum(room[order] * releases[order])
    last = int(np.searchsorted(freed, overrun_us))
    if last == len(order):
        return None
    cuts = np.zeros_like(room)
    cuts[order[:last]] = room[order[:last]]
    left = overrun_us - (int(freed[last - 1]) if last else 0)
    cuts[order[last]] = -(-left // int(releases[order[last]]))
    return cuts


@lru_cache(maxsize=4)
def steps_of(periods: tuple[int, ...], deadlines: tuple[int, ...]) -> list[LevelGroup]:
    """The groups to examine, by priority; they depend only on strides and deadlines."""
    points = scheduling_points(periods, deadlines)
    instants = np.array(points.instants, np.int64)
    strides = np.array(periods, np.int64)
    if len(periods) <= QUERIES_LOOKED_AT_ALONE:
        releases = -(-instants[:, None] // strides)
        return [
            LevelGroup(level, level, instants[:reach], releases[:reach, : level + 1])
            for level, reach in enumerate(points.reach)
        ]
    steps = []
    first = 0
    # How much the rounded-up releases exceed a fluid schedule at an instant, for equal shares.
    rounded_up = np.zeros(len(instants))
    for level, deadline in enumerate(deadlines):
        rounded_up += -(-instants // periods[level]) * periods[level] / instants
        if level + 1 < len(deadlines) and deadlines[level + 1] == deadline:
            continue
        reach = points.reach[level]
        chosen = np.argsort(rounded_up[: reach - 1], kind="stable")[: POINTS_BEYOND - 1]
        looked_at = instants[[*sorted(chosen.tolist()), reach - 1]]
        steps.append(LevelGroup(first, level, looked_at, -(-looked_at[:, None] // strides[: level + 1])))
        first = level + 1
    return steps
