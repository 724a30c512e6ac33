"""The least number of tracks for which every target of a pool's tables is proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from freshline.analysis.np_gedf_per_task import NpGedfPerTask
from freshline.analysis.response import tardiness_bounds
from freshline.analysis.utilization import tracks_at_least
from freshline.definitions.warehouse import PolicyName
from freshline.plan.staleness import StalenessModel
from freshline.plan.tracks import divide, pool_tardiness

# Longer than any target.
NEVER = 1 << 62
# Clusters change with every number of tracks, so each one is tried out; this many are.
CLUSTERED_TRIES = 64


@dataclass(frozen=True, slots=True)
class Question:
    """A pool whose tracks may be changed, in a warehouse whose other pools stay as they are."""

    policy: PolicyName
    members: Sequence[int]  # table indices
    costs: Sequence[int]  # by member
    periods: Sequence[int]
    model: StalenessModel
    response_us: Sequence[int | None]  # by table index; the members' entries do not matter
    target_lag_us: Sequence[int | None]  # by table index

    def holds(self, tardiness: Sequence[int] | None) -> bool:
        """Whether every target of the pool's tables holds with these tardiness bounds."""
        if tardiness is None:
            return False
        bounds = self.bounds(tardiness)
        for member in self.members:
            bound, target = bounds[member], self.target_lag_us[member]
            if bound is None or (target is not None and bound > target):
                return False
        return True

    def bounds(self, tardiness: Sequence[int]) -> list[int | None]:
        response = list(self.response_us)
        for member, period, late in zip(self.members, self.periods, tardiness, strict=True):
            response[member] = period + late
        return self.model.bounds(response)


def least_tracks(question: Question) -> int | None:
    """The least m from ⌈U⌉ to the number of tables; None where no m proves all targets.

    The bound is not monotone in m, so every m is looked at.
    """
    costs, periods = question.costs, question.periods
    if not costs or any(cost > period for cost, period in zip(costs, periods, strict=True)):
        return None
    everyone = len(costs)
    least = max(1, tracks_at_least(costs, periods))
    if least > everyone or not question.holds([0] * everyone):
        return None  # not even a track for each table helps
    if question.policy == "clustered-edf":
        return _clustered(question, least)
    if least == 1 and question.holds(tardiness_bounds(costs, periods, 1)):
        return 1
    fewest = max(2, least)
    share_allowed = _share_allowed(question, [cost - -(-cost // fewest) for cost in costs])
    if share_allowed is not None:
        np_gedf = NpGedfPerTask(costs, periods)
        for tracks in range(fewest, everyone):
            # The first test is cheap and passes nearly as seldom as the second, so few are worked out.
            likely = np_gedf.work_left_at_least(tracks) // tracks <= share_allowed
            if likely and question.holds(np_gedf.tardiness(tracks)):
                return tracks
    return everyone


def _share_allowed(question: Question, fixed: Sequence[int]) -> int | None:
    """The largest y for which all targets hold with Y = fixed + y; None where they do not hold for y = 0.

    With m tracks or more a table's tardiness bound is at least σ/m + e − e/m, so that no larger share σ/m
    of the work left can do. Each A(V) is the largest of several sums of constants and one y for each of the
    pool's tables on a path: convex and increasing in y. So stepping from a y that is too large along the
    slope of a violated target never steps over the answer (Newton's method).
    """
    if not question.holds(fixed):
        return None
    targets = [question.target_lag_us[member] for member in question.members]
    share = max((target for target in targets if target is not None), default=None)
    if share is None:
        return NEVER
    in_pool = set(question.members)
    while True:
        bounds = question.bounds([part + share for part in fixed])
        slopes = _slopes(question.model, bounds, in_pool)
        steps = [
            -(-(bound - target) // slopes[member])
            for member, target in zip(question.members, targets, strict=True)
            if target is not None and (bound := bounds[member]) is not None and bound > target
        ]
        if not steps:
            return share
        share -= max(steps)


def _slopes(model: StalenessModel, bounds: Sequence[int | None], in_pool: set[int]) -> list[int]:
    """How many tables of the pool lie on the path that decides each table's bound."""
    slopes = [0] * len(bounds)
    for index in model.order:
        deciding = max(model.sources[index], key=lambda source: bounds[source] or 0, default=None)
        slopes[index] = (index in in_pool) + (0 if deciding is None else slopes[deciding])
    return slopes


def _clustered(question: Question, least: int) -> int | None:
    costs, periods = question.costs, question.periods
    for tracks in range(least, min(len(costs), least + CLUSTERED_TRIES) + 1):
        clusters = divide(question.policy, costs, periods, tracks, Fraction(1))
        if question.holds(pool_tardiness(question.policy, costs, periods, tracks, clusters)):
            return tracks
    return None
