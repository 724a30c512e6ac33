"""Makes the plan of a warehouse from its definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from freshline.base.errors import InputError
from freshline.definitions.language.policies import POLICIES, Held, PolicyName
from freshline.definitions.sections.classes import PART_MOST_US
from freshline.definitions.sections.pools import Pool, Recovery
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.clusters import Cluster
from freshline.planning.analysis.utilization import fits, utilization
from freshline.planning.costs.bounds import average_us, longest_update_us, worst_case_us
from freshline.planning.costs.cores import spark_cores
from freshline.planning.plan.advice import advise
from freshline.planning.plan.blocking import PoolTasks, batch_limit, blocking_most, tasks_of
from freshline.planning.plan.counted_costs import count_cores
from freshline.planning.plan.least_tracks import TRIES_MAX, LeastTracks, least_tracks
from freshline.planning.plan.plan import ClusterPlan, Plan, PoolPlan, TablePlan
from freshline.planning.plan.queries import with_queries
from freshline.planning.plan.reach import Reach
from freshline.planning.plan.staleness import StalenessModel, staleness_model
from freshline.planning.plan.step_graph import StepGraph
from freshline.planning.plan.step_placement import StepPlacement
from freshline.planning.plan.tracks import divide, pool_tardiness, recovery_periods


def make_plan(
    warehouse: Warehouse,
    learned: Mapping[str, int] | None = None,
    placed: StepPlacement | None = None,
) -> Plan:
    """Computes whether every target holds. Raises InputError if a cost is missing.

    `learned` has the number of runs that the costs of tables and queries were learned from. `placed` has the
    nodes and sub-deadlines of steps, which say how stale the steps can become that tables read.
    """
    declared, warehouse = warehouse, count_cores(warehouse)
    steps_us = _steps_us(warehouse, placed)
    model, schedules, tables = _scheduled(warehouse, steps_us, learned or {})
    sparks = spark_cores(declared)
    _add_recovery(tables, schedules)
    _mark_expected_downstream(tables, warehouse)
    least: list[LeastTracks] = []
    pools: list[PoolPlan] = []
    for schedule in schedules:
        reach = Reach(schedule.plan.tables, tables, model)
        pool = schedule.plan
        if warehouse.pools[pool.name].node in sparks:
            must_hold = reach.attainable | {table.name for table in tables.values() if table.holds}
            tracks = _least_tracks_of_cores(declared, placed, pool, must_hold)
            least.append(LeastTracks(pool.policy, tracks, reach.attainable))
        else:
            least.append(least_tracks(pool, schedule.recovery, tables, reach))
        most_us = blocking_most(schedule.plan.policy, schedule.parts, reach)
        pools.append(replace(_with_least(schedule.plan, least[-1]), blocking_most_us=most_us))
    advice = tuple(advise(pools, tables, least, model))
    found = tuple(tables.values())
    plan = Plan(warehouse, tuple(pools), found, advice, placed=placed, steps_us=steps_us, declared=declared)
    return with_queries(plan, learned or {})


def tables_that_hold(warehouse: Warehouse, placed: StepPlacement | None = None) -> frozenset[str]:
    """The tables whose targets are proven, with their cores counted."""
    counted = count_cores(warehouse)
    _, _, tables = _scheduled(counted, _steps_us(counted, placed), {})
    return frozenset(name for name, table in tables.items() if table.holds)


def _scheduled(
    warehouse: Warehouse, steps_us: Mapping[str, int], learned: Mapping[str, int]
) -> tuple[StalenessModel, list[_Schedule], dict[str, TablePlan]]:
    """How the pools serve their tables, and how stale each can become."""
    costs = _worst_cases_us(warehouse)
    members: dict[str, list[Table]] = {name: [] for name in warehouse.pools}
    for table in warehouse.tables.values():
        members[table.pool].append(table)
    classes: dict[str, list[str]] = {name: [] for name in warehouse.pools}
    for each in warehouse.classes.values():
        classes[each.pool].append(each.name)
    schedules = [
        _schedule(pool, members[name], costs, classes[name]) for name, pool in warehouse.pools.items()
    ]
    response_us: dict[str, int | None] = {}
    for schedule in schedules:
        response_us.update(zip(schedule.plan.tables, schedule.response_us, strict=True))
    model = staleness_model(warehouse, steps_us)
    return model, schedules, _table_plans(warehouse, costs, response_us, model.bounds(response_us), learned)


def _steps_us(warehouse: Warehouse, placed: StepPlacement | None) -> dict[str, int]:
    """By step, how stale it can become, if that is proven."""
    return {} if placed is None else StepGraph(warehouse).staleness_us(placed)


def _least_tracks_of_cores(
    declared: Warehouse, placed: StepPlacement | None, pool: PoolPlan, must_hold: frozenset[str]
) -> int | None:
    """The least number of tracks at the present cores: costs change with every number, so each is tried."""
    for tracks in range(1, min(TRIES_MAX, max(1, len(pool.tables))) + 1):
        tried = what_if(declared, None, {pool.name: tracks})
        if must_hold <= tables_that_hold(tried, placed):
            return tracks
    return None


def what_if(warehouse: Warehouse, policy: PolicyName | None, tracks: Mapping[str, int]) -> Warehouse:
    """The same warehouse with another policy in all pools that may have it, or other numbers of tracks."""
    others: tuple[Held, ...] = ("classes", "queries")
    holds = {each.pool: held for held in others for each in getattr(warehouse, held).values()}
    pools: dict[str, Pool] = {}
    for name, pool in warehouse.pools.items():
        changed = replace(pool, tracks=tracks.get(name, pool.tracks))
        if policy is not None and holds.get(name, "tables") in POLICIES[policy].holds:
            changed = replace(changed, policy=policy)
        pools[name] = changed
    return replace(warehouse, pools=pools)


def _with_least(pool: PoolPlan, least: LeastTracks) -> PoolPlan:
    """The pool with its least number of tracks, if that proves all of its tables."""
    proves = least.policy == pool.policy and least.tables.issuperset(pool.tables)
    return replace(pool, tracks_least=least.tracks if proves else None)


def _worst_cases_us(warehouse: Warehouse) -> dict[str, int]:
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
    return {name: _worst_case_us(warehouse, table) for name, table in warehouse.tables.items()}


def _worst_case_us(warehouse: Warehouse, table: Table) -> int:
    assert table.cost is not None
    feed = None if table.feed is None else warehouse.feeds[table.feed]
    return worst_case_us(table.cost, longest_update_us(table, feed))


@dataclass(frozen=True, slots=True)
class _Schedule:
    """How a pool serves its tables; the lists are in the order of its tables."""

    plan: PoolPlan
    parts: list[
        tuple[PoolTasks, Sequence[int]]
    ]  # its clusters or the whole pool, with the places of their tables
    response_us: list[int | None]
    provisioned_us: list[int]
    recovery_periods_us: list[int] | None
    recovery: Recovery | None


def _schedule(pool: Pool, own: list[Table], costs_us: Mapping[str, int], classes: Sequence[str]) -> _Schedule:
    costs, periods = [costs_us[table.name] for table in own], [table.period_us for table in own]
    adaptive = POLICIES[pool.policy].adaptive
    provisioned = costs
    if adaptive and pool.provisioning == "average":
        provisioned = [_average_us(table) for table in own]
    recovering = recovery_periods(pool.recovery, provisioned, periods, pool.tracks) if adaptive else None
    clusters = divide(pool.policy, costs, periods, pool.tracks, pool.cluster_factor)
    blocking_us, part_us = pool.counted_blocking_us, PART_MOST_US if classes else 0
    tardiness = pool_tardiness(
        pool.policy, provisioned, periods, pool.tracks, clusters, recovering, blocking_us, part_us
    )
    isolated = clusters if POLICIES[pool.policy].clusters == "isolated" else None
    parts = tasks_of(provisioned, periods, pool.tracks, isolated, recovering)
    limits = [batch_limit(pool.policy, part, blocking_us) for part in parts]
    names = tuple(table.name for table in own)
    plan = PoolPlan(
        name=pool.name,
        tracks=pool.tracks,
        policy=pool.policy,
        utilization=utilization(costs, periods),
        fits=fits(provisioned, periods, pool.tracks),
        tables=names,
        clusters=None if clusters is None else _of_tables(clusters, names, limits),
        tracks_least=None,
        provisioning=pool.provisioning if adaptive else "worst",
        blocking_us=blocking_us,
        batch_limit_us=min((limit for limit in limits if limit is not None), default=None),
        classes=tuple(classes),
        part_us=part_us,
    )
    response_us = [None if y is None else p + y for p, y in zip(periods, tardiness, strict=True)]
    places = [range(len(own))] if isolated is None else [cluster.members for cluster in isolated]
    return _Schedule(
        plan,
        list(zip(parts, places, strict=True)),
        response_us,
        provisioned,
        recovering,
        pool.recovery if adaptive else None,
    )


def _of_tables(
    clusters: Sequence[Cluster], names: Sequence[str], limits: Sequence[int | None]
) -> tuple[ClusterPlan, ...]:
    # Clusters that help each other have no limits.
    own = limits if len(limits) == len(clusters) else [None] * len(clusters)
    return tuple(
        ClusterPlan(tuple(names[member] for member in cluster.members), cluster.tracks, limit)
        for cluster, limit in zip(clusters, own, strict=True)
    )


def without_bounds(plan: Plan, unknown: frozenset[str]) -> Plan:
    """Removes the bounds of all pools with tables of unknown cost, and of all tables downstream."""
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
    return replace(
        plan,
        tables=tables,
        pools=tuple(_unlimited(pool) if pool.name in pools else pool for pool in plan.pools),
    )


def _unlimited(pool: PoolPlan) -> PoolPlan:
    """A pool without bounds: batches cannot break any."""
    if "blocking" not in POLICIES[pool.policy].options:
        return pool
    clusters = None
    if pool.clusters is not None:
        clusters = tuple(replace(cluster, batch_limit_us=None) for cluster in pool.clusters)
    return replace(pool, blocking_most_us=None, batch_limit_us=None, clusters=clusters)


def _average_us(table: Table) -> int:
    assert table.cost is not None
    return average_us(table.cost, table.period_us)


def _add_recovery(tables: dict[str, TablePlan], schedules: Iterable[_Schedule]) -> None:
    """Adds recovery periods to the tables of adaptive pools, and marks expected bounds."""
    for schedule in schedules:
        if schedule.recovery_periods_us is None:
            continue
        expected = schedule.plan.provisioning == "average"
        for place, name in enumerate(schedule.plan.tables):
            tables[name] = replace(
                tables[name],
                provisioned_us=schedule.provisioned_us[place],
                recovery_period_us=schedule.recovery_periods_us[place],
                expected=expected,
            )


def _mark_expected_downstream(tables: dict[str, TablePlan], warehouse: Warehouse) -> None:
    """A bound that uses the expected bound of a source is only expected too, in any pool."""
    for name in warehouse.topological_order:
        if any(tables[source].expected for source in warehouse.tables[name].sources if source in tables):
            tables[name] = replace(tables[name], expected=True)


def _table_plans(
    warehouse: Warehouse,
    costs: Mapping[str, int],
    response_us: Mapping[str, int | None],
    bounds: Mapping[str, int | None],
    learned: Mapping[str, int],
) -> dict[str, TablePlan]:
    return {
        name: TablePlan(
            name=name,
            pool=table.pool,
            period_us=table.period_us,
            cost_us=costs[name],
            response_bound_us=response_us[name],
            staleness_bound_us=bounds[name],
            target_lag_us=table.target_lag_us,
            holds=_holds(bounds[name], table.target_lag_us),
            learned_from_runs=learned.get(name, 0),
        )
        for name, table in warehouse.tables.items()
    }


def _holds(bound_us: int | None, target_us: int | None) -> bool:
    return bound_us is not None and (target_us is None or bound_us <= target_us)
