"""The verdict on a warehouse, with figures worked out by hand or printed in the papers."""

from fractions import Fraction

import pytest

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.planning.plan.make import make_plan, what_if
from freshline.testing.builder import Builder
from freshline_lab.experiments.staleness.staleness_bounds import (
    COMPARED,
    CONTENTION_FREE,
    StalenessCase,
    tasks_per_class,
    warehouse,
)

RM, PRP, _, NP_GEDF, C_NP_GEDF = COMPARED


def responses(builder: Builder) -> list[float | None]:
    return [
        None if table.response_bound_us is None else table.response_bound_us / SECOND
        for table in make_plan(builder.build()).tables
    ]


def test_the_worst_case_cost_takes_variability_and_the_longest_update_into_account():
    plan = make_plan(
        Builder(tracks=2)
        .continuous("a", period=300, cost=3, rate=0.1, variability=0.2)
        .files("b", period=300, phase=20, jitter=10, timestamp_jitter=5, cost=3, rate=0.1)
        .build()
    )
    # 1.2·(3 + 30) and 3 + 0.1·(300 + 10 + 5)
    assert [table.cost_us / SECOND for table in plan.tables] == [39.6, 34.5]


def test_no_table_is_tardy_where_each_has_a_track():
    assert responses(
        Builder(tracks=2).continuous("a", period=10, cost=9).continuous("b", period=7, cost=7)
    ) == [10, 7]


def test_no_table_is_tardy_on_one_track_that_passes_jeffays_test():
    assert responses(Builder().continuous("a", period=10, cost=3).continuous("b", period=20, cost=6)) == [
        10,
        20,
    ]


def test_on_one_track_a_table_is_tardy_by_at_most_the_longest_blocking():
    # The exact test fails: b's 6 s may block a, which has only 4 s.
    assert responses(Builder().continuous("a", period=4, cost=1).continuous("b", period=20, cost=6)) == [
        10,
        20,
    ]


def test_the_np_gedf_bound_on_the_four_tracks_of_paper_004():
    # Theorem 2's Y = e + x would be 4247.9, 4327.1, 4683.5, 8009.9 for the four classes of the 30 tables;
    # the bound for each task is smaller.
    case = StalenessCase(Fraction(11, 100), "zero", 4, NP_GEDF, 0, 0)
    tardiness = {}
    for table in make_plan(warehouse(case)).tables:
        assert table.response_bound_us is not None
        tardiness[table.period_us // SECOND] = round((table.response_bound_us - table.period_us) / SECOND, 1)
    assert tardiness == {300: 4144.6, 900: 4204.0, 3600: 4471.3, 28800: 6966.1}


def test_the_two_readings_of_the_fill_give_30_and_23_tables_on_four_tracks():
    assert tasks_per_class(4, Fraction(11, 100)) == [3, 3, 3, 21]
    assert tasks_per_class(4, Fraction(132, 1000)) == [2, 2, 2, 17]


def test_with_a_fill_of_0_11_one_cluster_satisfies_condition_10_at_every_m():
    for tracks in (4, 8, 16, 24, 32):
        plan = make_plan(warehouse(StalenessCase(Fraction(11, 100), "zero", tracks, C_NP_GEDF, 0, 0)))
        assert plan.pools[0].clusters is not None
        assert [cluster.tracks for cluster in plan.pools[0].clusters] == [tracks]


def test_all_tracks_are_given_to_clusters():
    for tracks in (4, 8, 16, 24, 32):
        plan = make_plan(warehouse(StalenessCase(Fraction(132, 1000), "zero", tracks, C_NP_GEDF, 0, 0)))
        assert plan.pools[0].clusters is not None
        assert sum(cluster.tracks for cluster in plan.pools[0].clusters) == tracks
        members = [name for cluster in plan.pools[0].clusters for name in cluster.tables]
        assert sorted(members) == sorted(table.name for table in plan.tables)


@pytest.mark.parametrize("policy", ["fifo", "rm", "prp"])
def test_policies_without_a_bound_prove_nothing(policy):
    builder = Builder(policy=policy).continuous("a", period=10, target=100).continuous("b", period=10)
    plan = make_plan(builder.build())
    assert [(table.staleness_bound_us, table.holds) for table in plan.tables] == [
        (None, False),
        (None, False),
    ]
    assert plan.advice == (
        f"Pool updates: no staleness bound is known for policy {policy}.",
        "Pool updates: 1 track with policy edf would prove every target of its tables.",
    )


def test_a_table_without_a_target_holds_when_its_bound_is_finite():
    plan = make_plan(Builder().continuous("a", period=10).build())
    assert (plan.holds, plan.tables[0].target_lag_us, plan.advice) == (True, None, ())


def test_a_target_equal_to_the_bound_holds():
    assert make_plan(Builder().continuous("a", period=10, target=20).build()).holds
    assert not make_plan(
        Builder().continuous("a", period=10, target=Fraction(19_999_999, 10**6)).build()
    ).holds


def test_an_overloaded_pool_is_a_verdict_with_advice():
    builder = Builder()
    for name in "abc":
        builder.continuous(name, period=10, cost=5, target=20)
    plan = make_plan(builder.build())
    assert not plan.holds
    assert not plan.pools[0].fits
    assert plan.pools[0].tracks_least == 3
    assert plan.advice == (
        "Pool updates is overloaded: its tables need 1.50 of 1 track.",
        "Pool updates: 3 tracks would prove every target of its tables.",
    )


def test_a_cost_above_the_period_is_a_verdict_with_advice():
    plan = make_plan(Builder(tracks=2).continuous("a", period=10, cost=12).continuous("b", period=10).build())
    assert not plan.holds
    assert plan.advice == (
        "a: one update may cost 12s, more than its period of 10s: "
        "lengthen the period or make the update cheaper.",
        "Pool updates: until then other tables on the same tracks have no bound either.",
    )


def test_a_target_below_what_any_number_of_tracks_gives_says_so():
    plan = make_plan(Builder(tracks=2).continuous("a", period=10, cost=2, target=15).build())
    assert plan.advice == (
        "a: a target_lag of 20s holds as it is.",
        "a: no number of tracks proves 15s: even with a track for each table it is 20s. "
        "Shorten its period or its sources'.",
    )


def test_a_table_behind_an_unbounded_one_is_told_to_wait_for_it():
    plan = make_plan(
        Builder()
        .pool("reports")
        .continuous("a", period=10, cost=11)
        .derived("b", ["a"], period=10, target=100, pool="reports")
        .build()
    )
    assert plan.advice[-1] == "b: fix the tables that it reads first; one of them has no bound."


def test_utilisation_is_decided_exactly():
    builder = Builder(tracks=1)
    for number in range(3):
        builder.continuous(f"t{number}", period=3, cost=1)
    plan = make_plan(builder.build())
    assert plan.pools[0].fits
    assert plan.pools[0].utilization == 1.0


def test_a_missing_cost_is_bad_input_that_names_the_tables():
    from dataclasses import replace

    warehouse = Builder().continuous("a", period=10).continuous("b", period=10).build()
    tables = {name: replace(table, cost=None) for name, table in warehouse.tables.items()}
    with pytest.raises(InputError, match="no cost is known for a, b"):
        make_plan(replace(warehouse, tables=tables))


def test_policy_and_tracks_can_be_changed_for_a_what_if():
    warehouse = Builder(tracks=1).pool("reports").continuous("a", period=10).build()
    changed = what_if(warehouse, "rm", {"reports": 4})
    assert {name: (pool.tracks, pool.policy) for name, pool in changed.pools.items()} == {
        "updates": (1, "rm"),
        "reports": (4, "rm"),
    }


def test_the_contention_free_case_has_a_track_for_each_table():
    case = StalenessCase(Fraction(11, 100), "zero", 4, CONTENTION_FREE, 0, 0)
    plan = make_plan(warehouse(case))
    assert plan.pools[0].tracks == len(plan.tables) == 30
    assert all(table.response_bound_us == table.period_us for table in plan.tables)
