"""From definitions to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshline.analysis.utilization import fits, utilization
from freshline.costs.bounds import longest_update_us, worst_case_us
from freshline.definitions.errors import InputError
from freshline.definitions.warehouse import PolicyName, Pool, Table, Warehouse
from freshline.plan.advice import advise
from freshline.plan.least_tracks import Least, least_tracks
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.plan.staleness import staleness_model
from freshline.plan.tracks import divide, pool_tardiness


def make_plan(warehouse: Warehouse, learned: Mapping[str, int] | None = None) -> Plan:
    """Works out whether every target holds. Raises InputError where a cost is missing.

    `learned` says of which tables the cost was learned, and from how many runs.
    """
    costs = _worst_cases_us(warehouse)
    periods = [table.period_us for table in warehouse.tables.values()]
    members = _members(warehouse)
    response_us: list[int | None] = [None] * len(costs)
    pools = []
    for pool in warehouse.pools.values():
        own = members[pool.name]
        own_costs, own_periods = [costs[i] for i in own], [periods[i] for i in own]
        clusters = divide(pool.policy, own_costs, own_periods, pool.tracks, pool.cluster_factor)
        tardiness = pool_tardiness(pool.policy, own_costs, own_periods, pool.tracks, clusters)
        for member, period, late in zip(own, own_periods, tardiness, strict=True):
            response_us[member] = None if late is None else period + late
        pools.append(
            PoolPlan(
                name=pool.name,
                tracks=pool.tracks,
                policy=pool.policy,
                utilization=utilization(own_costs, own_periods),
                fits=fits(own_costs, own_periods, pool.tracks),
                tables=tuple(own),
                clusters=clusters,
                tracks_least=None,
            )
        )
    model = staleness_model(warehouse)
    tables = _table_plans(warehouse, costs, response_us, model.bounds(response_us), learned or {})
    least = [least_tracks(pool, tables, model) for pool in pools]
    pools = [_with_least(pool, answer) for pool, answer in zip(pools, least, strict=True)]
    return Plan(warehouse, tuple(pools), tables, tuple(advise(pools, tables, least, model)))


def what_if(warehouse: Warehouse, policy: PolicyName | None, tracks: Mapping[str, int]) -> Warehouse:
    """The same warehouse with another policy in all pools, or other numbers of tracks in some."""
    pools: dict[str, Pool] = {}
    for name, pool in warehouse.pools.items():
        changed = replace(pool, tracks=tracks.get(name, pool.tracks))
        pools[name] = changed if policy is None else replace(changed, policy=policy)
    return replace(warehouse, pools=pools)


def _with_least(pool: PoolPlan, least: Least) -> PoolPlan:
    """The pool with its least number of tracks, where that proves what it is: all of its tables."""
    proves = least.policy == pool.policy and least.tables.issuperset(pool.tables)
    return replace(pool, tracks_least=least.tracks if proves else None)


def _worst_cases_us(warehouse: Warehouse) -> list[int]:
    missing = [table for table in warehouse.tables.values() if table.cost is None]
    if missing:
        names = ", ".join(table.name for table in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise InputError(
            f"no cost is known for {names}{more}",
            "Declare one, such as `cost: {startup: 3s, rate: 0.1}` (seconds of work for each second of data)"
            ", or have it learned: run it, or `freshline calibrate`",
            missing[0].place,
        )
    return [_worst_case_us(warehouse, table) for table in warehouse.tables.values()]


def _worst_case_us(warehouse: Warehouse, table: Table) -> int:
    assert table.cost is not None
    feed = None if table.feed is None else warehouse.feeds[table.feed]
    return worst_case_us(table.cost, longest_update_us(table, feed))


def _members(warehouse: Warehouse) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {name: [] for name in warehouse.pools}
    for index, table in enumerate(warehouse.tables.values()):
        members[table.pool].append(index)
    return members


def _table_plans(
    warehouse: Warehouse,
    costs: list[int],
    response_us: list[int | None],
    bounds: list[int | None],
    learned: Mapping[str, int],
) -> tuple[TablePlan, ...]:
    return tuple(
        TablePlan(
            name=table.name,
            pool=table.pool,
            period_us=table.period_us,
            cost_us=cost,
            response_bound_us=response,
            staleness_bound_us=bound,
            target_lag_us=table.target_lag_us,
            holds=bound is not None and (table.target_lag_us is None or bound <= table.target_lag_us),
            learned_from_runs=learned.get(table.name, 0),
        )
        for table, cost, response, bound in zip(
            warehouse.tables.values(), costs, response_us, bounds, strict=True
        )
    )
