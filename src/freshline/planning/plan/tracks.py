"""Which tracks of a pool serve which of its tables, and their tardiness."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.definitions.sections.pools import Recovery
from freshline.planning.analysis.clusters import Cluster, construct_clusters, hand_out
from freshline.planning.analysis.exact import bracketed_sum
from freshline.planning.analysis.recovery_periods import (
    adaptive_tardiness,
    common_recovery_periods,
    fastest_recovery_periods,
)
from freshline.planning.analysis.response import tardiness_bounds


def divide(
    policy: PolicyName, costs: Sequence[int], periods: Sequence[int], tracks: int, cluster_factor: Fraction
) -> tuple[Cluster, ...] | None:
    """How a policy divides a pool's tracks among its tables; None if all tracks serve all tables."""
    kind = POLICIES[policy].clusters
    if kind == "helping":
        return period_clusters(costs, periods, tracks, cluster_factor) if costs else ()
    if kind == "isolated" and costs:
        clusters = construct_clusters(costs, periods, tracks)
        return None if clusters is None else tuple(clusters)
    return None


def recovery_periods(
    recovery: Recovery, costs: Sequence[int], periods: Sequence[int], tracks: int
) -> list[int]:
    """p^[r] of every table of a pool with an adaptive policy."""
    if recovery == "together":
        return common_recovery_periods(costs, periods, tracks)
    return fastest_recovery_periods(costs, periods, tracks)


def pool_tardiness(
    policy: PolicyName,
    costs: Sequence[int],
    periods: Sequence[int],
    tracks: int,
    clusters: Sequence[Cluster] | None,
    recovery: Sequence[int] | None = None,
    blocking: int = 0,
    part: int = 0,
) -> list[int | None]:
    """By table of a pool: the smallest proven tardiness bound Y, or None without one.

    `recovery` are the periods during recovery, if the policy changes periods; `blocking` is how long a batch
    may block others, `part` how long a part of a request may.
    """
    tardiness: list[int | None] = [None] * len(costs)
    if not POLICIES[policy].proven or not costs:
        return tardiness
    if recovery is not None:
        adaptive = adaptive_tardiness(costs, periods, recovery, tracks, blocking)
        return tardiness if adaptive is None else [*adaptive]
    # Clusters are independent: one without a bound does not affect the others.
    for cluster in clusters or (Cluster(tuple(range(len(costs))), tracks),):
        bounds = tardiness_bounds(
            [costs[member] for member in cluster.members],
            [periods[member] for member in cluster.members],
            cluster.tracks,
            blocking,
            part,
        )
        if bounds is not None:
            for member, bound in zip(cluster.members, bounds, strict=True):
                tardiness[member] = bound
    return tardiness


def period_clusters(
    costs: Sequence[int], periods: Sequence[int], tracks: int, factor: Fraction
) -> tuple[Cluster, ...]:
    """PRP's clusters: periods within a factor of a cluster's shortest, tracks by utilisation.

    Every cluster gets a track while there are any, the shortest periods first; one without a track is served
    by promotion only. Further tracks are handed out as in `construct_clusters`. With a factor of 1 each
    period has its own cluster.
    """
    by_period = sorted(range(len(periods)), key=lambda index: (periods[index], index))
    groups: list[list[int]] = []
    for index in by_period:
        if not groups or periods[index] > factor * periods[groups[-1][0]]:
            groups.append([])
        groups[-1].append(index)
    counts = [1 if number < tracks else 0 for number in range(len(groups))]
    loads = [bracketed_sum([costs[i] for i in group], [periods[i] for i in group]) for group in groups]
    counts = hand_out(tracks - sum(counts), counts, loads)
    return tuple(Cluster(tuple(sorted(group)), count) for group, count in zip(groups, counts, strict=True))
