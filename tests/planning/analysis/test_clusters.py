"""Clusters by cost: paper 004's figure 4, its Example 3 and its task sets."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.analysis.clusters import Cluster, KMeansRow, construct_clusters, hand_out, table
from freshline.planning.analysis.exact import BracketedRational, bracketed_sum
from freshline.planning.analysis.utilization import tracks_at_least
from plain_schedulers import Tasks, apart, task_lists


def assigned_one_by_one(costs: list[int], centers: list[Fraction]) -> list[KMeansRow]:
    """Figure 4's inner loop, task by task."""
    rows: list[KMeansRow] = []
    while not rows or list(rows[-1].centers) != centers:
        members: list[list[int]] = [[] for _ in centers]
        for task, cost in enumerate(costs):
            members[min(range(len(centers)), key=lambda at: (abs(cost - centers[at]), at))].append(task)
        kept = [cluster for cluster in members if cluster]
        rows.append(KMeansRow(tuple(centers), tuple(tuple(cluster) for cluster in kept)))
        centers = [Fraction(sum(costs[task] for task in cluster), len(cluster)) for cluster in kept]
    return rows


def test_example_3_goes_through_the_rows_of_table_1() -> None:
    # The print's fourth row repeats the third: there the centers have ceased to change.
    assert table([1, 1, 4, 5, 7, 10], [5, 7, 10]) == [
        KMeansRow((Fraction(5), Fraction(7), Fraction(10)), ((0, 1, 2, 3), (4,), (5,))),
        KMeansRow((Fraction(11, 4), Fraction(7), Fraction(10)), ((0, 1, 2), (3, 4), (5,))),
        KMeansRow((Fraction(2), Fraction(6), Fraction(10)), ((0, 1, 2), (3, 4), (5,))),
    ]


def test_a_cluster_that_loses_all_its_tasks_is_dropped() -> None:
    rows = table([0, 0, 0, 4, 16, 20, 20, 20], [0, 10, 20])
    assert rows[-1].clusters == ((0, 1, 2, 3), (4, 5, 6, 7))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=15), st.data())
def test_iterations_are_those_of_assigning_tasks_one_by_one(costs: list[int], data: st.DataObject) -> None:
    centers = data.draw(st.lists(st.sampled_from(costs), min_size=1, max_size=5, unique=True).map(sorted))
    rows = table(costs, centers)
    literal = assigned_one_by_one(costs, [Fraction(center) for center in centers])
    assert rows[: len(literal)] == literal
    assert rows[-1] == literal[-1]


def filled(tracks: int, by: Fraction) -> tuple[list[int], list[int]]:
    """Paper 004's task sets: each class filled up to its share of m/1.2, costs 0.132·p, in milliseconds."""
    shares = {300: Fraction(1, 10), 900: Fraction(1, 10), 3_600: Fraction(1, 10), 28_800: Fraction(7, 10)}
    fill = tracks / Fraction(12, 10)
    periods = [period * 1_000 for period, share in shares.items() for _ in range(int(share * fill / by))]
    return [period * 132 // 1_000 for period in periods], periods


@pytest.mark.parametrize("tracks", [4, 8, 16, 24, 32])
def test_filled_by_the_average_cost_paper_004_s_sets_make_one_cluster(tracks: int) -> None:
    costs, periods = filled(tracks, by=Fraction(11, 100))
    assert construct_clusters(costs, periods, tracks) == [Cluster(tuple(range(len(costs))), tracks)]


@pytest.mark.parametrize(
    ("tracks", "sizes_and_tracks"),
    [
        (8, [(5, 1), (5, 1), (5, 1), (35, 5)]),
        (16, [(10, 2), (10, 2), (10, 2), (70, 10)]),
        (24, [(15, 3), (15, 3), (15, 3), (106, 15)]),
        (32, [(20, 4), (20, 3), (20, 3), (141, 22)]),
    ],
)
def test_filled_by_the_worst_case_they_make_one_for_each_period(
    tracks: int, sizes_and_tracks: list[tuple[int, int]]
) -> None:
    clusters = construct_clusters(*filled(tracks, by=Fraction(132, 1_000)), tracks)
    assert clusters is not None
    assert [(len(cluster.members), cluster.tracks) for cluster in clusters] == sizes_and_tracks


def test_tracks_left_over_go_to_the_fullest_cluster_and_on_a_tie_to_the_first() -> None:
    assert construct_clusters([1, 10], [2, 20], 3) == [Cluster((0,), 2), Cluster((1,), 1)]
    assert construct_clusters([1, 10], [3, 20], 3) == [Cluster((0,), 1), Cluster((1,), 2)]


def test_an_overload_has_no_clusters() -> None:
    assert construct_clusters([2, 2, 2], [3, 3, 3], 1) is None


@given(task_lists(12, 40), st.integers(0, 6), st.integers(0, 3))
def test_clusters_part_the_tasks_and_use_every_track(tasks: Tasks, more: int, seed: int) -> None:
    costs, periods = apart(tasks)
    tracks = tracks_at_least(costs, periods) + more
    clusters = construct_clusters(costs, periods, tracks, seed)
    assert clusters is not None
    assert clusters == construct_clusters(costs, periods, tracks, seed)
    assert sorted(task for cluster in clusters for task in cluster.members) == list(range(len(tasks)))
    assert sum(cluster.tracks for cluster in clusters) == tracks
    for cluster in clusters:
        own = [costs[task] for task in cluster.members], [periods[task] for task in cluster.members]
        assert tracks_at_least(*own) <= cluster.tracks


@given(st.lists(task_lists(3, 12), min_size=1, max_size=6), st.integers(0, 60), st.data())
def test_tracks_handed_out_are_those_of_giving_them_one_by_one(
    clusters: list[Tasks], left_over: int, data: st.DataObject
) -> None:
    counts = [data.draw(st.integers(1, 5)) for _ in clusters]
    loads = [sum(Fraction(cost, period) for cost, period in tasks) for tasks in clusters]
    one_by_one = list(counts)
    for _ in range(left_over):
        one_by_one[max(range(len(loads)), key=lambda at: (loads[at] / one_by_one[at], -at))] += 1
    assert hand_out(left_over, counts, [bracketed_sum(*apart(tasks)) for tasks in clusters]) == one_by_one


def test_a_million_tracks_are_handed_out_without_looking_at_each() -> None:
    compared = 0

    class Counted(BracketedRational):
        def exceeds(self, other: BracketedRational, share: int, other_share: int) -> bool:
            nonlocal compared
            compared += 1
            return super().exceeds(other, share, other_share)

    loads = [Counted(share << 60, (share << 60) + 1, lambda: (0, 1)) for share in (3, 5, 7, 11)]
    handed_out = hand_out(1_000_000, [1, 1, 1, 1], loads)
    assert sum(handed_out) == 1_000_004
    assert compared < 200
