"""The least number of tracks of a pool for which every target in its reach is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import gt

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.definitions.sections.pools import Recovery
from freshline.planning.analysis.exact import ceiling_of
from freshline.planning.analysis.np_gedf_per_task import NpGedfPerTask
from freshline.planning.analysis.response import tardiness_bounds
from freshline.planning.analysis.utilization import tracks_at_least
from freshline.planning.plan.plan import PoolPlan, TablePlan
from freshline.planning.plan.reach import Reach
from freshline.planning.plan.tracks import divide, pool_tardiness, recovery_periods

# Clusters, recovery periods and the number of parts that may block change with every number of tracks. So
# each number is tried, up to this many.
TRIES_MAX = 64


@dataclass(frozen=True, slots=True)
class LeastTracks:
    """How many tracks are enough for a pool, with all other pools as they are."""

    policy: PolicyName  # the pool's own, or edf if that proves nothing
    tracks: int | None  # None if tracks cannot help
    # The tables that then hold: the pool's own and all downstream, in any pool. Tables that would not hold
    # even without tardiness in the pool are left out.
    tables: frozenset[str]
    # The first and the last number of tracks tried without success, with the pool's own policy.
    in_vain: tuple[int, int] | None = None


def least_tracks(
    pool: PoolPlan, recovery: Recovery | None, tables: Mapping[str, TablePlan], reach: Reach
) -> LeastTracks:
    """The least m from ⌈U⌉ to the number of tables; if each has to be tried, the least of the first 64.

    The bound is not monotone in m, so every m is examined. `recovery` is how recovery periods are chosen in a
    pool with an adaptive policy, `reach` is the pool's.
    """
    own = [tables[name] for name in pool.tables]
    costs = [table.provisioned_us or table.cost_us for table in own]
    periods = [table.period_us for table in own]
    if not costs or any(map(gt, costs, periods)) or not reach.attainable:
        return LeastTracks(pool.policy, None, frozenset())
    known = POLICIES[pool.policy]
    in_vain = None
    if (known.proven and known.clusters) or recovery is not None or pool.part_us:
        fewest = tracks_at_least(costs, periods)
        most = min(len(costs), fewest + TRIES_MAX - 1)
        for tracks in range(fewest, most + 1):
            if _holds(pool, recovery, costs, periods, tracks, reach):
                return LeastTracks(pool.policy, tracks, reach.attainable)
        in_vain = (fewest, most)
    policy = pool.policy if known.proven and in_vain is None else "edf"
    return LeastTracks(policy, _least(costs, periods, pool.blocking_us, reach), reach.attainable, in_vain)


def _least(costs: Sequence[int], periods: Sequence[int], blocking: int, reach: Reach) -> int:
    """If all tracks serve all tables. With a track for each table every attainable target holds."""
    least, everyone = tracks_at_least(costs, periods), len(costs)
    if least == 1:
        tardiness = tardiness_bounds(costs, periods, 1, blocking)
        if tardiness is not None and reach.holds(tardiness):
            return 1
    fewest = max(2, least)
    # With m tracks or more a table's tardiness bound is at least σ/m + e − e/m. So a share σ/m of the work
    # left that is above what the targets allow rules out an m.
    fixed = [cost - ceiling_of(cost, fewest) for cost in costs]
    if not reach.holds(fixed):
        return everyone
    share_allowed = reach.most(fixed)
    np_gedf = NpGedfPerTask(costs, periods, blocking)
    for tracks in range(fewest, everyone):
        # The first test is cheap and passes nearly as seldom as the second, which so runs rarely.
        likely = share_allowed is None or np_gedf.work_left_at_least(tracks) // tracks <= share_allowed
        if likely and (tardiness := np_gedf.tardiness(tracks)) is not None and reach.holds(tardiness):
            return tracks
    return everyone


def _holds(
    pool: PoolPlan,
    recovery: Recovery | None,
    costs: Sequence[int],
    periods: Sequence[int],
    tracks: int,
    reach: Reach,
) -> bool:
    clusters = divide(pool.policy, costs, periods, tracks, Fraction(1))
    recovering = None if recovery is None else recovery_periods(recovery, costs, periods, tracks)
    tardiness = pool_tardiness(
        pool.policy, costs, periods, tracks, clusters, recovering, pool.blocking_us, pool.part_us
    )
    known = [late for late in tardiness if late is not None]
    return len(known) == len(tardiness) and reach.holds(known)
