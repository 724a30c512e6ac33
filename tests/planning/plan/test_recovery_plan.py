"""What a plan says of recovery: periods, provisioning, bounds that hold in expectation, time to recover."""

import random
from dataclasses import replace

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Provisioning, Recovery
from freshline.planning.plan.make import make_plan, what_if
from freshline.planning.plan.plan import Plan, TablePlan
from freshline.testing.builder import Builder


def experiment(provisioning: Provisioning, recovery: Recovery = "fastest") -> Plan:
    """Paper 001's: seven tables of 300 s and seven of 900 s on two tracks; S = 0.01·p, R = 0.1, b = 0.2."""
    builder = Builder(tracks=2, policy="aus", provisioning=provisioning, recovery=recovery)
    for number in range(14):
        period = 300 if number < 7 else 900
        builder.files(f"v{number + 1}", period=period, cost=period // 100, rate=0.1, variability=0.2)
    return make_plan(builder.build())


def seconds(time_us: int | None) -> float | None:
    return None if time_us is None else round(time_us / SECOND, 1)


def told(table: TablePlan) -> tuple[float | None, ...]:
    """Cost at worst and as provisioned, recovery period, Θ and A, in seconds."""
    times = (
        table.cost_us,
        table.provisioned_us,
        table.recovery_period_us,
        table.response_bound_us,
        table.staleness_bound_us,
    )
    return tuple(seconds(time) for time in times)


def test_the_paper_s_experiment_with_average_case_provisioning():
    plan = experiment("average")
    # p / 5.18, and Θ = p + e + x with x = 115.4
    assert {told(table) for table in plan.tables[:7]} == {(39.6, 33, 57.9, 448.4, 1048.4)}
    assert {told(table) for table in plan.tables[7:]} == {(118.8, 99, 173.7, 1114.4, 2914.4)}
    assert all(table.expected for table in plan.tables)
    assert (plan.pools[0].provisioning, plan.pools[0].utilization) == ("average", pytest.approx(14 * 0.132))


def test_the_paper_s_experiment_with_worst_case_provisioning():
    plan = experiment("worst")
    # p / 2.15; x = (2·118.8 − 39.6) / (2 − 0.284) = 115.4 is as large, for W is smaller and e larger.
    assert {told(table) for table in plan.tables[:7]} == {(39.6, 39.6, 139.4, 455, 1055)}
    assert {told(table) for table in plan.tables[7:]} == {(118.8, 118.8, 418.3, 1134.2, 2934.2)}
    assert not any(table.expected for table in plan.tables)
    assert plan.pools[0].provisioning == "worst"


def test_the_paper_s_experiment_where_all_may_recover_together():
    plan = experiment("average", "together")
    # p·U / m with U = 1.54
    assert {table.recovery_period_us for table in plan.tables} == {231 * SECOND, 693 * SECOND}


def test_how_long_the_paper_s_tables_recover_after_its_outage():
    plan = experiment("average")
    # (448.38·300 + 5300·57.895) / (300 − 57.895)
    assert seconds(plan.tables[0].recovery_time_us(5000 * SECOND)) == 1823.0
    # With jitter of 10 s: 10·57.895 / 242.105 more.
    assert seconds(plan.tables[0].recovery_time_us(5000 * SECOND, 10 * SECOND)) == 1825.4


@pytest.mark.parametrize("policy", ["edf", "edf-strict", "clustered-edf", "fifo", "rm", "prp"])
def test_other_policies_have_no_recovery(policy):
    plan = make_plan(Builder(policy=policy).files("v", period=10, cost=2).build())
    (table,) = plan.tables
    assert (table.provisioned_us, table.recovery_period_us, table.expected) == (None, None, False)
    assert table.recovery_time_us(100 * SECOND) is None


def test_nothing_is_promised_where_nothing_is_spare_or_bounded():
    full = make_plan(Builder(policy="aus").files("v", period=10, cost=10).build()).tables[0]
    assert (full.recovery_period_us, full.response_bound_us) == (10 * SECOND, 10 * SECOND)
    assert full.recovery_time_us(100 * SECOND) is None
    overloaded = Builder(policy="aus").files("v", period=10, cost=6).files("w", period=10, cost=6).build()
    plan = make_plan(overloaded)
    assert (plan.pools[0].fits, [table.holds for table in plan.tables]) == (False, [False, False])
    assert plan.tables[0].recovery_time_us(100 * SECOND) is None


def test_with_average_provisioning_a_pool_may_fit_that_does_not_at_worst():
    builder = Builder(policy="aus", provisioning="average")
    builder.files("v", period=10, cost=4, variability=0.5).files("w", period=10, cost=5, variability=0.5)
    plan = make_plan(builder.build())
    assert (plan.pools[0].utilization, plan.pools[0].fits) == (pytest.approx(1.35), True)
    assert [(table.expected, table.staleness_bound_us) for table in plan.tables] == [
        (True, (10 + 4 + 1 + 20) * SECOND),
        (True, (10 + 5 + 1 + 20) * SECOND),
    ]
    worst = replace(plan.warehouse.pools["updates"], provisioning="worst")
    assert not make_plan(replace(plan.warehouse, pools={"updates": worst})).pools[0].fits


def test_average_provisioning_counts_a_regular_update_and_not_the_longest():
    builder = Builder(tracks=2, policy="aus", provisioning="average")
    builder.files("v", period=10, jitter=5, timestamp_jitter=5, rate=0.1, cost=1)
    table = make_plan(builder.build()).tables[0]
    assert (table.cost_us, table.provisioned_us) == (3 * SECOND, 2 * SECOND)


def test_what_recovers_in_one_pool_is_no_matter_of_another():
    plan = make_plan(
        Builder(policy="aus")
        .pool("marts", policy="aus")
        .pool("plain")
        .files("a", period=10, cost=2)
        .files("b", period=10, cost=3)
        .derived("c", ["a"], period=10, cost=2, pool="marts")
        .derived("d", ["a"], period=10, cost=2, pool="plain")
        .build()
    )
    # 2 / (1 − 0.5 + 0.2) and 3 / (1 − 0.5 + 0.3); c is alone.
    assert [table.recovery_period_us for table in plan.tables] == [2_857_143, 3_750_000, 2_000_000, None]
    assert [table.recovery_time_us(SECOND) is None for table in plan.tables] == [False, False, False, True]


def test_an_adaptive_pool_without_tables_is_planned():
    plan = make_plan(Builder().pool("empty", policy="aus").files("v", period=10, cost=1).build())
    assert (plan.pools[1].tables, plan.pools[1].utilization, plan.pools[1].fits) == ((), 0, True)


def test_the_bound_of_an_adaptive_policy_is_never_below_that_of_edf():
    """Theorem 1 counts with the largest share that a table may ever have."""
    rng = random.Random(0)
    for _ in range(100):
        builder = Builder(tracks=rng.randint(1, 4), policy="aus")
        for number in range(rng.randint(1, 8)):
            period = rng.randint(5, 50)
            builder.files(f"v{number}", period=period, cost=rng.randint(1, max(1, period // 3)))
        adaptive = make_plan(builder.build())
        edf = make_plan(what_if(adaptive.warehouse, "edf", {}))
        for table, other in zip(adaptive.tables, edf.tables, strict=True):
            if table.response_bound_us is None:
                assert other.response_bound_us is None
            else:
                assert other.response_bound_us is not None
                assert table.response_bound_us >= other.response_bound_us


@pytest.mark.parametrize("recovery", ["fastest", "together"])
def test_the_least_number_of_tracks_is_the_first_for_which_all_targets_hold(recovery):
    rng = random.Random(1)
    found = set()
    for _ in range(60):
        builder = Builder(tracks=1, policy="aus", recovery=recovery)
        for number in range(rng.randint(2, 7)):
            period = rng.randint(5, 50)
            target = 3 * period + rng.randint(0, 60)
            builder.files(f"v{number}", period=period, cost=rng.randint(1, period), target=target)
        warehouse = builder.build()
        plan = make_plan(warehouse)
        tried = {
            tracks: make_plan(what_if(warehouse, None, {"updates": tracks}))
            for tracks in range(1, len(warehouse.tables) + 1)
        }
        least = next((tracks for tracks, other in tried.items() if other.holds), None)
        assert plan.pools[0].tracks_least == least
        found.add(least)
    assert len(found) >= 4
