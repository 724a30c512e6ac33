"""The least number of tracks for which every target of a pool's tables is proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from freshline.analysis.np_gedf import NpGedf
from freshline.analysis.response import tardiness_bounds
from freshline.analysis.utilization import tracks_at_least
from freshline.definitions.warehouse import PolicyName
from freshline.plan.staleness import StalenessModel
from freshline.plan.tracks import divide, pool_tardiness

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
    x_allowed = _x_allowed(question)
    if x_allowed is not None:
        np_gedf = NpGedf(costs, periods)
        for tracks in range(max(2, least), everyone):
            x = np_gedf.x_ceiling(tracks)
            if x is not None and x <= x_allowed:
                return tracks
    return everyone


def _x_allowed(question: Question) -> int | None:
    """The largest x for which all targets hold with Y = e + x; None where they do not hold for x = 0.

    Each A(V) is the largest of several sums of constants and one x for each of the pool's tables on a
    path: convex and increasing in x. So stepping from an x that is too large along the slope of a violated
    target never steps over the answer (Newton's method on a convex piecewise linear function).
    """
    if not question.holds(question.costs):
        return None
    targets = [question.target_lag_us[member] for member in question.members]
    x = max((target for target in targets if target is not None), default=None)
    if x is None:
        return 1 << 62
    in_pool = set(question.members)
    while True:
        bounds = question.bounds([cost + x for cost in question.costs])
        slopes = _slopes(question.model, bounds, in_pool)
        steps = [
            -(-(bound - target) // slopes[member])
            for member, target in zip(question.members, targets, strict=True)
            if target is not None and (bound := bounds[member]) is not None and bound > target
        ]
        if not steps:
            return x
        x -= max(steps)


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
