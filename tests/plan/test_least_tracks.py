"""The least number of tracks, against trying every one."""

import random
from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.definitions.warehouse import Warehouse
from freshline.plan.make import make_plan, what_if
from freshline.testing.builder import Builder
from freshline.testing.warehouses import Shape, random_warehouse


def with_random_targets(warehouse: Warehouse, seed: int) -> Warehouse:
    """Targets around the present bounds: some need more tracks, some fewer, some are out of reach."""
    rng = random.Random(seed)
    tightness = rng.choice((0.6, 0.9, 1.0, 1.1, 2.0))
    tables = {}
    for plan in make_plan(warehouse).tables:
        assert plan.staleness_bound_us is not None
        target = int(plan.staleness_bound_us * tightness * rng.uniform(0.95, 1.05)) + 1
        tables[plan.name] = replace(
            warehouse.tables[plan.name], target_lag_us=rng.choice((None, target, target))
        )
    return replace(warehouse, tables=tables)


def by_trying(warehouse: Warehouse, pool: str) -> int | None:
    tables = [table.name for table in warehouse.tables.values() if table.pool == pool]
    for tracks in range(1, len(tables) + 1):
        plan = make_plan(what_if(warehouse, None, {pool: tracks}))
        if all(table.holds for table in plan.tables if table.name in tables):
            return tracks
    return None


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_it_is_what_trying_every_number_finds(seed):
    shape = Shape(tables_max=14, tracks_max=4, policies=("edf", "edf-strict", "clustered-edf"), pools_max=2)
    warehouse = with_random_targets(random_warehouse(seed, shape), seed)
    for pool in make_plan(warehouse).pools:
        assert pool.tracks_least == by_trying(warehouse, pool.name)


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
    held = [m for m in range(1, 31) if make_plan(what_if(warehouse, None, {"updates": m})).holds]
    assert make_plan(warehouse).pools[0].tracks_least == held[0] == 4
    assert 10 not in held
    assert 30 in held
