"""How long batches may be, and how much of it all targets bear."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_least_tracks import SHAPE, with_random_targets

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan, what_if, without_bounds
from freshline.planning.plan.plan import Plan
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import random_warehouse

POLICIES = ("edf", "clustered-edf", "aus", "aus-slack")


def with_blocking(warehouse: Warehouse, pool: str, blocking_us: int) -> Warehouse:
    changed = replace(warehouse.pools[pool], blocking_us=blocking_us)
    return replace(warehouse, pools={**warehouse.pools, pool: changed})


def held(plan: Plan) -> set[str]:
    return {table.name for table in plan.tables if table.holds}


@sampled(120)
@given(st.integers(0, 100_000), st.sampled_from(POLICIES))
def test_all_targets_bear_the_most_and_no_more(seed: int, policy: str) -> None:
    warehouse = with_random_targets(what_if(random_warehouse(seed, SHAPE), policy, {}), seed)
    without = make_plan(warehouse)
    for pool in without.pools:
        most = pool.blocking_most_us
        if most is None:  # nothing limits it
            endless = make_plan(with_blocking(warehouse, pool.name, 10**9 * SECOND))
            targets = {t.name for t in without.tables if t.target_lag_us is not None}
            assert held(without) & targets <= held(endless)
            continue
        assert held(without) <= held(make_plan(with_blocking(warehouse, pool.name, most)))
        if most:
            beyond = most + 2 * pool.tracks
            assert not held(without) <= held(make_plan(with_blocking(warehouse, pool.name, beyond)))


@sampled(60)
@given(st.integers(0, 100_000), st.sampled_from(POLICIES), st.integers(0, 20 * SECOND))
def test_bounds_only_grow_with_the_blocking_that_they_count(seed: int, policy: str, blocking_us: int) -> None:
    warehouse = what_if(random_warehouse(seed, SHAPE), policy, {})
    before = make_plan(warehouse)
    pool = before.pools[seed % len(before.pools)]
    after = make_plan(with_blocking(warehouse, pool.name, blocking_us))
    for one, other in zip(before.tables, after.tables, strict=True):
        assert one.staleness_bound_us is not None
        assert other.staleness_bound_us is not None
        assert one.staleness_bound_us <= other.staleness_bound_us
    limit = after.pools[seed % len(before.pools)].batch_limit_us
    assert limit is None or limit >= blocking_us


def test_a_batch_may_be_as_long_as_the_mth_largest_cost() -> None:
    builder = Builder(tracks=2).files("a", period=1000, cost=10).files("b", period=3, cost=1)
    builder.files("c", period=100, cost=1).files("d", period=100, cost=1)
    pool = make_plan(builder.build()).pools[0]
    assert pool.batch_limit_us == 1 * SECOND
    declared = make_plan(with_blocking(builder.build(), "updates", 7 * SECOND)).pools[0]
    assert (declared.blocking_us, declared.batch_limit_us) == (7 * SECOND, 7 * SECOND)


def test_on_one_track_a_batch_may_be_as_long_as_the_exact_test_leaves() -> None:
    builder = Builder().files("a", period=6, cost=4).files("b", period=7, cost=1).files("c", period=8, cost=1)
    assert make_plan(builder.build()).pools[0].batch_limit_us == 2 * SECOND


def test_with_a_track_for_each_table_or_without_a_bound_the_period_alone_limits_a_batch() -> None:
    plan = make_plan(Builder(tracks=2).files("a", period=6, cost=4).files("b", period=7, cost=1).build())
    assert plan.pools[0].batch_limit_us is None
    crowded = make_plan(Builder(tracks=1).files("a", period=6, cost=4).files("b", period=7, cost=1).build())
    assert crowded.pools[0].batch_limit_us is not None
    assert without_bounds(crowded, frozenset({"a"})).pools[0].batch_limit_us is None


def test_where_no_job_starts_early_nothing_is_counted_and_there_are_no_batches() -> None:
    builder = Builder(tracks=1, blocking=3).files("a", period=6, cost=2).files("b", period=7, cost=1)
    for policy in ("edf-strict", "fifo", "rm", "prp"):
        pool = make_plan(what_if(builder.build(), policy, {})).pools[0]
        assert (pool.blocking_us, pool.blocking_most_us, pool.batch_limit_us) == (0, None, 0)
