"""Batches, jobs of several files: how long they may be, and how long all targets tolerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import gt
from typing import Final

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.planning.analysis.clusters import Cluster
from freshline.planning.analysis.np_edf import blocking_tardiness, spare_time
from freshline.planning.analysis.np_gedf import NpGedf
from freshline.planning.analysis.np_gedf_per_task import NpGedfPerTask
from freshline.planning.analysis.utilization import fits
from freshline.planning.plan.reach import Reach

# The spare time on one track is searched at this many instants; if not found by then, it is none.
_POINTS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class PoolTasks:
    """The tables of a pool, or of a cluster, on its tracks; the lists are in the order of the tables.

    `recovery` are the periods during recovery, if the policy changes periods.
    """

    costs: Sequence[int]
    periods: Sequence[int]
    tracks: int
    recovery: Sequence[int] | None = None

    @property
    def bounded(self) -> bool:
        return not any(map(gt, self.costs, self.periods)) and fits(self.costs, self.periods, self.tracks)

    def spare(self) -> int:
        """How long a batch may be on one track without a missed deadline; −1 if one is missed anyway."""
        found = spare_time(self.costs, self.periods, _POINTS_MAX)
        return -1 if found is None else found


def tasks_of(
    costs: Sequence[int],
    periods: Sequence[int],
    tracks: int,
    clusters: Sequence[Cluster] | None,
    recovery: Sequence[int] | None,
) -> list[PoolTasks]:
    """The tasks by cluster, if there are any; a batch blocks no table of another cluster."""
    if clusters is None:
        return [PoolTasks(costs, periods, tracks, recovery)]
    return [
        PoolTasks(
            [costs[member] for member in cluster.members],
            [periods[member] for member in cluster.members],
            cluster.tracks,
        )
        for cluster in clusters
    ]


def batch_limit(policy: PolicyName, tasks: PoolTasks, blocking: int) -> int | None:
    """How long a batch may be, if it is no longer than its table's period (docs/batches.md).

    None: only its period counts, as there is a track for each table, or no bound to break. 0: this policy has
    no batches.
    """
    if "blocking" not in POLICIES[policy].options:
        return 0
    if len(tasks.costs) <= tasks.tracks or not tasks.bounded:
        return None
    if tasks.tracks == 1 and tasks.recovery is None:
        return max(blocking, tasks.spare())
    return max(blocking, nlargest(tasks.tracks, tasks.costs)[-1])


def blocking_most(
    policy: PolicyName, parts: Sequence[tuple[PoolTasks, Sequence[int]]], reach: Reach
) -> int | None:
    """The longest blocking with which every attainable target in a pool's reach holds, maybe a few µs less.

    None if nothing limits it or nothing is proven; 0 if a target does not hold without blocking. `parts` are
    its clusters, or the whole pool, each with its tables' places in the pool.
    """
    waiting = [(tasks, places) for tasks, places in parts if len(tasks.costs) > tasks.tracks]
    if "blocking" not in POLICIES[policy].options or not waiting or reach.target_most is None:
        return None
    if not all(tasks.bounded for tasks, _ in parts):
        return None
    if len(parts) == 1:
        tasks, _ = parts[0]
        if tasks.recovery is not None:
            return _most_of_adaptive(tasks, tasks.recovery, reach)
        if tasks.tracks > 1:
            return _most_of_several_tracks(tasks, reach)
    functions = [(_tardiness_by_blocking(tasks), places) for tasks, places in waiting]
    members = sum(len(places) for _, places in parts)

    def holds(blocking: int) -> bool:
        tardiness = [0] * members
        for tardiness_of, places in functions:
            for place, late in zip(places, tardiness_of(blocking), strict=True):
                tardiness[place] = late
        return reach.holds(tardiness)

    # With a longer blocking every table's share would be above every target.
    most = (reach.target_most + 1) * max(tasks.tracks for tasks, _ in waiting)
    if holds(most):
        return None
    return _largest(holds, most)


def _largest(holds: Callable[[int], bool], too_long: int) -> int:
    """The largest number below `too_long` for which it holds; 0 if there is none."""
    low, high = 0, too_long
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _tardiness_by_blocking(tasks: PoolTasks) -> Callable[[int], list[int]]:
    if tasks.tracks == 1:
        spare = tasks.spare()
        longer = blocking_tardiness(tasks.costs, tasks.periods)
        assert longer is not None, "it fits"
        return lambda blocking: [0 if blocking <= spare else max(late, blocking) for late in longer]

    def of_several_tracks(blocking: int) -> list[int]:
        tardiness = NpGedfPerTask(tasks.costs, tasks.periods, blocking).tardiness(tasks.tracks)
        assert tardiness is not None, "it fits"
        return tardiness

    return of_several_tracks


def _most_of_several_tracks(tasks: PoolTasks, reach: Reach) -> int | None:
    """From the share σ/m of the work left that the targets allow; few tasks decide what that σ tolerates.

    For a σ that is a multiple of m the tardiness is σ/m + e − ⌊e/m⌋. The heaviest choice of A and B consists
    of the m heaviest carriers and the m costliest tasks: one of these that is not chosen could replace any
    other.
    """
    costs, periods, tracks = tasks.costs, tasks.periods, tasks.tracks
    fixed = [cost - cost // tracks for cost in costs]
    share = reach.most(fixed) if reach.holds(fixed) else 0
    assert share is not None, "there are targets"
    work = share * tracks
    if work < max(costs):
        return 0

    def as_carrier(task: int) -> float:
        return tracks * costs[task] + costs[task] * (work - costs[task]) / periods[task]

    everyone = range(len(costs))
    # One more than the proof needs, against rounding, and because there must be more tasks than tracks.
    deciding = {
        *nlargest(tracks + 1, everyone, key=as_carrier),
        *nlargest(tracks + 1, everyone, key=costs.__getitem__),
    }
    heavy = [costs[task] for task in deciding]
    apart = [periods[task] for task in deciding]

    blocking = work
    while (less := NpGedfPerTask(heavy, apart, blocking).less_blocking(tracks, work)) is not None:
        if less < 0:
            return 0
        blocking = less
    return blocking


def _most_of_adaptive(tasks: PoolTasks, recovery: Sequence[int], reach: Reach) -> int | None:
    x = reach.most(tasks.costs) if reach.holds(tasks.costs) else 0
    assert x is not None, "there are targets"
    most = NpGedf(tasks.costs, tasks.periods, recovery).blocking_most(tasks.tracks, x)
    # A blocking below the m-th largest e changes nothing: if that is too long, none fits.
    return most if most >= nlargest(tasks.tracks, tasks.costs)[-1] else 0
