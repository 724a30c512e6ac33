"""How a policy divides a pool's tracks, and what that proves."""

import time
from fractions import Fraction

from freshline.base.duration import SECOND
from freshline.planning.analysis.clusters import Cluster
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import ClusterPlan
from freshline.planning.plan.tracks import period_clusters
from freshline.testing.builder import Builder


def test_prp_joins_periods_within_the_factor_and_gives_the_rest_of_the_tracks_by_utilisation():
    # Work a track after one each: 1/10 + 1/20 and 1/2 + 1/4, then 3/8 and so on.
    assert period_clusters([1, 1, 100, 100], [10, 20, 200, 400], 5, Fraction(2)) == (
        Cluster((0, 1), 1),
        Cluster((2, 3), 4),
    )


def test_prp_gives_the_shortest_periods_a_track_where_there_are_too_few():
    assert period_clusters([1, 1, 1], [30, 10, 20], 2, Fraction(1)) == (
        Cluster((1,), 1),
        Cluster((2,), 1),
        Cluster((0,), 0),
    )


def test_prp_compares_utilisations_exactly():
    # 3/10 against 1/10 + 2/10, which as floats is more: a tie, which goes to the first.
    assert period_clusters([3, 10, 20], [10, 100, 100], 3, Fraction(1)) == (
        Cluster((0,), 2),
        Cluster((1, 2), 1),
    )


def test_prp_divides_a_million_tracks_at_once():
    costs, periods = range(1, 1_001), range(10_000, 20_000, 10)
    started = time.process_time()
    clusters = period_clusters(costs, periods, 1_000_000, Fraction(1))
    assert time.process_time() - started < 3
    assert sum(cluster.tracks for cluster in clusters) == 1_000_000
    assert clusters[0].tracks < clusters[-1].tracks


def test_a_cluster_without_a_bound_leaves_the_others_theirs():
    plan = make_plan(
        Builder(tracks=3, policy="clustered-edf")
        .continuous("a", period=60, cost=70)
        .continuous("b", period=3600, cost=1, target=10_800)
        .build()
    )
    assert plan.pools[0].clusters == (ClusterPlan(("b",), 1), ClusterPlan(("a",), 2))
    assert [(table.response_bound_us, table.holds) for table in plan.tables] == [
        (None, False),
        (3600 * SECOND, True),
    ]
