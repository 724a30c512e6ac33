"""The least number of tracks, against trying every one."""

import random
from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.definitions.sections.pools import Pool
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan, what_if
from freshline.planning.plan.plan import Plan
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import WarehouseShape, random_warehouse


def with_random_targets(warehouse: Warehouse, seed: int) -> Warehouse:
    """Targets around the bounds with as many or more tracks: some need more, some fewer, some too many."""
    rng = random.Random(seed)
    slack = rng.choice((0.8, 1.0, 1.0, 1.1))
    given = rng.choice((0.2, 0.8))
    more = {pool.name: pool.tracks + rng.randint(0, 4) for pool in warehouse.pools.values()}
    tables = {}
    for plan in make_plan(what_if(warehouse, None, more)).tables:
        assert plan.staleness_bound_us is not None
        target = int(plan.staleness_bound_us * slack * rng.uniform(1, 1.05)) + 1
        tables[plan.name] = replace(
            warehouse.tables[plan.name], target_lag_us=target if rng.random() < given else None
        )
    return replace(warehouse, tables=tables)


def layers(seed: int) -> Warehouse:
    """Three pools, each reading the one before, with many small tables on few tracks."""
    rng = random.Random(seed)
    builder = Builder()
    before: list[str] = []
    for pool in ("load", "join", "report"):
        builder.pool(pool, tracks=rng.randint(2, 3), policy=rng.choice(("edf", "edf", "clustered-edf")))
        names = [f"{pool}{number}" for number in range(rng.randint(3, 7))]
        for name in names:
            period = rng.randint(5, 300)
            common = {"period": period, "cost": rng.randint(1, 1 + period // 4), "pool": pool}
            if before:
                builder.derived(name, rng.sample(before, rng.randint(1, 2)), **common)
            else:
                builder.continuous(name, **common)
        before = names
    return builder.build()


def downstream(warehouse: Warehouse, tables: set[str]) -> set[str]:
    """What reads these tables, directly or not, without themselves."""
    reached = set(tables)
    for name in warehouse.topological_order:
        if not reached.isdisjoint(warehouse.tables[name].sources):
            reached.add(name)
    return reached - tables


def held(plan: Plan) -> set[str]:
    return {table.name for table in plan.tables if table.holds}


def by_trying(warehouse: Warehouse, pool: str) -> int | None:
    """The least m with which all own tables hold, and all downstream that hold if the pool is never tardy."""
    own = {table.name for table in warehouse.tables.values() if table.pool == pool}
    never_tardy = Pool(pool, len(own) or 1, "edf")
    best = held(make_plan(replace(warehouse, pools={**warehouse.pools, pool: never_tardy})))
    if not own or not own <= best:
        return None
    asked = own | (downstream(warehouse, own) & best)
    for tracks in range(1, len(own) + 1):
        if asked <= held(make_plan(what_if(warehouse, None, {pool: tracks}))):
            return tracks
    return None


SHAPE = WarehouseShape(
    tables_max=14, tracks_max=4, policies=("edf", "edf-strict", "clustered-edf"), pools_max=4
)


@sampled(150)
@given(st.integers(0, 2**32))
def test_it_is_what_trying_every_number_finds(seed):
    warehouse = with_random_targets(random_warehouse(seed, SHAPE), seed)
    for pool in make_plan(warehouse).pools:
        assert pool.tracks_least == by_trying(warehouse, pool.name)


@sampled(150)
@given(st.integers(0, 2**32))
def test_it_is_what_trying_every_number_finds_for_pools_that_read_each_other(seed):
    warehouse = with_random_targets(layers(seed), seed)
    for pool in make_plan(warehouse).pools:
        assert pool.tracks_least == by_trying(warehouse, pool.name)


@sampled(60)
@given(st.integers(0, 2**32))
def test_it_is_what_trying_every_number_finds_where_a_pool_has_no_bounds(seed):
    warehouse = with_random_targets(random_warehouse(seed, SHAPE), seed)
    pools = {name: replace(pool, policy="fifo") for name, pool in warehouse.pools.items() if name == "pool0"}
    warehouse = replace(warehouse, pools={**warehouse.pools, **pools})
    for pool in make_plan(warehouse).pools[1:]:
        assert pool.tracks_least == by_trying(warehouse, pool.name)


@sampled(60)
@given(st.integers(0, 2**32))
def test_a_warehouse_that_holds_still_does_with_the_least_tracks_of_one_pool(seed):
    warehouse = random_warehouse(seed, SHAPE)
    targets = {table.name: table.staleness_bound_us for table in make_plan(warehouse).tables}
    tables = {
        name: replace(table, target_lag_us=targets[name] if seed % 3 else None)
        for name, table in warehouse.tables.items()
    }
    plan = make_plan(replace(warehouse, tables=tables))
    assert plan.holds
    for pool in plan.pools:
        if pool.tracks_least is not None:
            assert make_plan(what_if(plan.warehouse, None, {pool.name: pool.tracks_least})).holds


def cross(load: int, rep: int = 1, target: int = 300) -> Warehouse:
    """A table of one pool that reads one of another, which may be tardy there."""
    return (
        Builder()
        .pool("load", tracks=load)
        .pool("rep", tracks=rep)
        .continuous("f", period=60, cost=20, pool="load")
        .continuous("g", period=600, cost=300, pool="load")
        .derived("d", ["f"], period=60, cost=5, target=target, pool="rep")
        .build()
    )


def test_tracks_are_counted_for_the_targets_of_other_pools_too():
    assert [pool.tracks_least for pool in make_plan(cross(load=2)).pools] == [None, 2, 1]
    # d cannot hold whatever its own pool does, as long as the other one is as it is.
    assert [pool.tracks_least for pool in make_plan(cross(load=1)).pools] == [None, 2, None]


def test_a_target_downstream_that_is_out_of_reach_does_not_count():
    # f and g hold with one track; d's 4 minutes at best do not, whatever the tracks.
    assert [pool.tracks_least for pool in make_plan(cross(load=1, target=239)).pools] == [None, 1, None]


def test_the_bound_is_not_monotone_so_every_number_is_looked_at():
    # Paper 004's set for four tracks: the bounds grow from 4 tracks to about 20, and fall thereafter.
    builder = Builder(tracks=4)
    for period, count in ((300, 3), (900, 3), (3600, 3), (28800, 21)):
        for number in range(count):
            builder.continuous(f"v{period}_{number}", period=period, cost=Fraction(132, 1000) * period)
    warehouse = builder.build()
    bounds = {table.name: table.staleness_bound_us for table in make_plan(warehouse).tables}
    tables = {name: replace(table, target_lag_us=bounds[name]) for name, table in warehouse.tables.items()}
    warehouse = replace(warehouse, tables=tables)
    enough = [m for m in range(1, 31) if make_plan(what_if(warehouse, None, {"updates": m})).holds]
    assert make_plan(warehouse).pools[0].tracks_least == enough[0] == 4
    assert 10 not in enough
    assert 30 in enough
