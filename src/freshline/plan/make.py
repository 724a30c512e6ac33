"""From definitions to the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from freshline.analysis.utilization import fits, utilization
from freshline.costs.bounds import average_us, longest_update_us, worst_case_us
from freshline.definitions.errors import InputError
from freshline.definitions.policies import POLICIES, PolicyName
from freshline.definitions.pools import Pool, Recovery
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.plan.advice import advise
from freshline.plan.least_tracks import Least, least_tracks
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.plan.staleness import staleness_model
from freshline.plan.tracks import divide, pool_tardiness, recovery_periods


def make_plan(warehouse: Warehouse, learned: Mapping[str, int] | None = None) -> Plan:
    """Works out whether every target holds. Raises InputError where a cost is missing.

    `learned` says of which tables the cost was learned, and from how many runs.
    """
    costs = _worst_cases_us(warehouse)
    all_tables = list(warehouse.tables.values())
    schedules = {
        pool.name: _schedule(pool, all_tables, own, costs)
        for pool, own in zip(warehouse.pools.values(), _members(warehouse), strict=True)
    }
    response_us: list[int | None] = [None] * len(costs)
    for schedule in schedules.values():
        for member, response in zip(schedule.plan.tables, schedule.response_us, strict=True):
            response_us[member] = response
    model = staleness_model(warehouse)
    tables = _table_plans(warehouse, costs, response_us, model.bounds(response_us), learned or {})
    tables = _expected_downstream(warehouse, _with_recovery(tables, schedules.values()))
    pools = [schedule.plan for schedule in schedules.values()]
    least = [least_tracks(schedule.plan, schedule.recovery, tables, model) for schedule in schedules.values()]
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


def _members(warehouse: Warehouse) -> list[list[int]]:
    """By pool, the indices of its tables."""
    members: dict[str, list[int]] = {name: [] for name in warehouse.pools}
    for index, table in enumerate(warehouse.tables.values()):
        members[table.pool].append(index)
    return list(members.values())


@dataclass(frozen=True, slots=True)
class _Schedule:
    """How a pool serves its tables; the lists are in the order of its tables."""

    plan: PoolPlan
    response_us: list[int | None]
    provisioned_us: list[int]
    recovery_periods_us: list[int] | None
    recovery: Recovery | None


def _schedule(pool: Pool, tables: list[Table], own: list[int], all_costs: list[int]) -> _Schedule:
    costs, periods = [all_costs[i] for i in own], [tables[i].period_us for i in own]
    adaptive = POLICIES[pool.policy].adaptive
    provisioned = costs
    if adaptive and pool.provisioning == "average":
        provisioned = [_average_us(tables[i]) for i in own]
    recovering = recovery_periods(pool.recovery, provisioned, periods, pool.tracks) if adaptive else None
    clusters = divide(pool.policy, costs, periods, pool.tracks, pool.cluster_factor)
    tardiness = pool_tardiness(pool.policy, provisioned, periods, pool.tracks, clusters, recovering)
    plan = PoolPlan(
        name=pool.name,
        tracks=pool.tracks,
        policy=pool.policy,
        utilization=utilization(costs, periods),
        fits=fits(provisioned, periods, pool.tracks),
        tables=tuple(own),
        clusters=clusters,
        tracks_least=None,
        provisioning=pool.provisioning if adaptive else "worst",
    )
    response_us = [None if y is None else p + y for p, y in zip(periods, tardiness, strict=True)]
    return _Schedule(plan, response_us, provisioned, recovering, pool.recovery if adaptive else None)


def without_bounds(plan: Plan, unknown: frozenset[str]) -> Plan:
    """No bounds for the pools of tables of unknown cost, nor for what is downstream of them."""
    warehouse = plan.warehouse
    pools = {warehouse.tables[name].pool for name in unknown}
    unbounded: set[str] = set()
    for name in warehouse.topological_order:
        table = warehouse.tables[name]
        if table.pool in pools or not unbounded.isdisjoint(table.sources):
            unbounded.add(name)
    tables = tuple(
        replace(table, response_bound_us=None, staleness_bound_us=None, holds=False)
        if table.name in unbounded
        else table
        for table in plan.tables
    )
    return replace(plan, tables=tables)


def _average_us(table: Table) -> int:
    assert table.cost is not None
    return average_us(table.cost, table.period_us)


def _with_recovery(tables: tuple[TablePlan, ...], schedules: Iterable[_Schedule]) -> tuple[TablePlan, ...]:
    """The tables of adaptive pools with their recovery periods; expected bounds are marked as such."""
    changed = list(tables)
    for schedule in schedules:
        if schedule.recovery_periods_us is None:
            continue
        expected = schedule.plan.provisioning == "average"
        for place, index in enumerate(schedule.plan.tables):
            changed[index] = replace(
                changed[index],
                provisioned_us=schedule.provisioned_us[place],
                recovery_period_us=schedule.recovery_periods_us[place],
                expected=expected,
            )
    return tuple(changed)


def _expected_downstream(warehouse: Warehouse, tables: tuple[TablePlan, ...]) -> tuple[TablePlan, ...]:
    """What counts with the expected bound of a source is no more than expected, in whatever pool."""
    changed = {table.name: table for table in tables}
    for name in warehouse.topological_order:
        if any(changed[source].expected for source in warehouse.tables[name].sources):
            changed[name] = replace(changed[name], expected=True)
    return tuple(changed.values())


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
