"""What a plan says would help, sentence by sentence."""

from fractions import Fraction

from freshline.planning.plan import least_tracks
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder

COSTLY = (
    "a: one update may cost 12s, more than its period of 10s: lengthen the period or make the update cheaper."
)


def advice(builder: Builder) -> list[str]:
    return list(make_plan(builder.build()).advice)


def two_pools(load: int = 1, rep: int = 1) -> Builder:
    return (
        Builder()
        .pool("load", tracks=load)
        .pool("rep", tracks=rep)
        .continuous("f", period=60, cost=20, pool="load")
        .continuous("g", period=600, cost=300, pool="load")
    )


def test_the_pool_is_named_whose_tracks_help_a_table_of_another():
    builder = two_pools().derived("d", ["f"], period=60, cost=5, target=300, pool="rep")
    assert advice(builder) == [
        "Pool load: 2 tracks would prove the target of d.",
        "d: a target_lag of 9m holds as it is.",
    ]


def test_no_number_of_tracks_is_said_to_help_only_if_none_does_in_any_pool():
    builder = two_pools().derived("d", ["f"], period=60, cost=5, target=239, pool="rep")
    assert advice(builder) == [
        "d: a target_lag of 9m holds as it is.",
        "d: no number of tracks proves 3m 59s: even with a track for each table it is 4m. "
        "Shorten its period or its sources'.",
    ]


def test_a_table_that_takes_more_tracks_in_two_pools_is_told_which():
    builder = (
        two_pools()
        .derived("d", ["f"], period=60, cost=20, target=300, pool="rep")
        .derived("e", ["g"], period=600, cost=300, pool="rep")
    )
    assert advice(builder) == [
        "d: a target_lag of 14m holds as it is.",
        "d: 5m can be proven, but by no change of one pool alone: it takes load and rep.",
    ]


def test_pools_without_a_proof_are_told_of_edf_one_by_one():
    builder = (
        Builder(policy="fifo")
        .pool("rep", policy="rm")
        .continuous("a", period=10)
        .derived("b", ["a"], period=10, target=100, pool="rep")
    )
    assert advice(builder) == [
        "Pool updates: no staleness bound is known for policy fifo.",
        "Pool updates: 1 track with policy edf would bound all of its tables.",
        "Pool rep: no staleness bound is known for policy rm.",
        "b: 1m 40s can be proven, but by no change of one pool alone: it takes rep and updates.",
    ]


def test_a_target_out_of_reach_does_not_hide_what_tracks_can_do_for_the_others():
    builder = (
        Builder()
        .continuous("a", period=10, cost=2, target=15)
        .continuous("b", period=4, cost=1, target=8)
        .continuous("c", period=60, cost=20, target=120)
    )
    assert advice(builder) == [
        "Pool updates: 3 tracks would prove every target of its tables that tracks can prove.",
        "a: a target_lag of 40s holds as it is.",
        "a: no number of tracks proves 15s: even with a track for each table it is 20s. "
        "Shorten its period or its sources'.",
        "b: a target_lag of 28s holds as it is.",
    ]


def test_a_cost_above_its_period_hides_no_other_advice():
    builder = (
        Builder()
        .continuous("a", period=10, cost=12)
        .continuous("b", period=10, cost=1, target=15)
        .continuous("c", period=10, cost=1, target=30)
    )
    assert advice(builder) == [
        COSTLY,
        "Pool updates is overloaded: its tables need 1.40 of 1 track.",
        "b: no number of tracks proves 15s: even with a track for each table it is 20s. "
        "Shorten its period or its sources'.",
    ]


def test_tables_that_share_tracks_with_a_cost_above_its_period_are_not_forgotten():
    builder = (
        Builder(tracks=2)
        .continuous("a", period=10, cost=12)
        .continuous("b", period=10, cost=1, target=30)
        .pool("rep")
        .derived("c", ["b"], period=10, target=100, pool="rep")
    )
    assert advice(builder) == [
        COSTLY,
        "Pool updates: until then other tables on the same tracks have no bound either.",
        "c: fix the tables that it reads first; one of them has no bound.",
    ]


def test_where_no_target_is_declared_none_is_promised():
    builder = Builder()
    for name in "abc":
        builder.continuous(name, period=10, cost=5)
    assert advice(builder) == [
        "Pool updates is overloaded: its tables need 1.50 of 1 track.",
        "Pool updates: 2 tracks would bound all of its tables.",
    ]


def test_an_overload_by_a_hair_is_said_in_words():
    builder = Builder()
    for name in "abc":
        builder.continuous(name, period=3, cost=1)
    builder.continuous("d", period=1_000_000, cost=Fraction(1, 10**6))
    assert advice(builder)[0] == "Pool updates is overloaded: its tables need just above 1 of 1 track."


def test_many_tables_are_counted_and_one_is_not_several():
    builder = Builder(tracks=2)
    for number in range(9):
        builder.continuous(f"t{number}", period=10, cost=11)
    assert advice(builder)[8:] == [
        "... and 1 more table.",
        "Pool updates is overloaded: its tables need 9.90 of 2 tracks.",
    ]


def test_tables_that_the_advised_tracks_mend_are_not_counted_again():
    builder = Builder()
    for number in range(12):
        builder.continuous(f"t{number}", period=10, cost=1, target=20)
    assert advice(builder) == [
        "Pool updates is overloaded: its tables need 1.20 of 1 track.",
        "Pool updates: 12 tracks would prove every target of its tables.",
    ]


def test_clusters_that_were_tried_in_vain_are_reported_with_what_edf_could_do(monkeypatch):
    monkeypatch.setattr(least_tracks, "TRIES_MAX", 2)
    builder = Builder(tracks=2, policy="clustered-edf")
    for number in range(6):
        builder.continuous(f"t{number}", period=10, cost=3, target=20)
    plan = make_plan(builder.build())
    assert plan.pools[0].tracks_least is None
    assert plan.advice[:2] == (
        "Pool updates: the least number of tracks with clustered-edf is not known; tried without success: "
        "2 to 3.",
        "Pool updates: 6 tracks with policy edf would prove every target of its tables.",
    )


def test_clusters_that_hold_beyond_what_was_tried_say_that_the_least_is_not_known(monkeypatch):
    monkeypatch.setattr(least_tracks, "TRIES_MAX", 1)
    builder = Builder(tracks=6, policy="clustered-edf")
    for number in range(6):
        builder.continuous(f"t{number}", period=10, cost=3, target=20)
    plan = make_plan(builder.build())
    assert plan.holds
    assert plan.advice == (
        "Pool updates: the least number of tracks with clustered-edf is not known; tried without success: 2.",
    )


def test_a_plan_that_holds_needs_no_advice():
    builder = two_pools(load=2).derived("d", ["f"], period=60, cost=5, target=300, pool="rep")
    plan = make_plan(builder.build())
    assert (plan.holds, plan.advice) == (True, ())
