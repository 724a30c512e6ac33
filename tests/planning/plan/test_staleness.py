"""A(V) by hand, table by table (paper 004, Definition 5; paper 001, Definition 13)."""

from freshline.base.duration import SECOND
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder


def bounds(builder: Builder) -> dict[str, float | None]:
    """Bounds in seconds. With as many tracks as tables Θ is the period."""
    return {
        table.name: None if table.staleness_bound_us is None else table.staleness_bound_us / SECOND
        for table in make_plan(builder.build()).tables
    }


def test_a_continuous_base_table_is_at_most_two_periods_stale_without_contention():
    assert bounds(Builder().continuous("v", period=10, cost=4)) == {"v": 20}


def test_a_phase_longer_than_the_period_counts_instead_of_it():
    assert bounds(Builder().continuous("v", period=10, phase=25, cost=4)) == {"v": 35}


def test_a_table_of_files_waits_for_its_file_as_well():
    # Θ + p + max(φ + J, p + J + κ) = 10 + 10 + max(4 + 3, 10 + 3 + 2)
    assert bounds(Builder().files("v", period=10, phase=4, jitter=3, timestamp_jitter=2)) == {"v": 35}
    # … + max(30 + 3, 10 + 3 + 2)
    assert bounds(Builder().files("v", period=10, phase=30, jitter=3, timestamp_jitter=2)) == {"v": 53}


def test_bounds_add_up_along_the_longest_path():
    builder = (
        Builder(tracks=5)
        .continuous("a", period=10)
        .continuous("b", period=30)
        .derived("c", ["a", "b"], period=20)
        .derived("d", ["c", "a"], period=5, phase=50)
    )
    # c: 20 + 20 + max(20, 60); d: 5 + max(5, 50) + 100
    assert bounds(builder) == {"a": 20, "b": 60, "c": 100, "d": 155}


def test_a_derived_table_with_any_file_feed_upstream_is_released_by_rule_4():
    builder = (
        Builder(tracks=5)
        .continuous("a", period=10)
        .files("b", period=10)
        .derived("c", ["a"], period=20)
        .derived("d", ["c", "b"], period=30)
    )
    # b: 10 + 10 + 10; d: 30 + 30 + max(60, 30)
    assert bounds(builder) == {"a": 20, "b": 30, "c": 60, "d": 120}


def test_nothing_is_proven_downstream_of_an_unbounded_table():
    builder = (
        Builder(tracks=1)
        .pool("calm", tracks=4)
        .continuous("a", period=10, cost=11)
        .continuous("b", period=10, pool="calm")
        .derived("c", ["a", "b"], period=10, pool="calm")
    )
    assert bounds(builder) == {"a": None, "b": 20, "c": None}
