"""Which continuous queries a pool can answer in time, and how much of their windows they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from freshline.base.duration import format_duration
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.pools import Pool
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.admission import QueryRefusal, admit, placed
from freshline.planning.analysis.levels import QueryLoad, is_schedulable, response_us
from freshline.planning.analysis.shedding import Rule, keep, raised, shed
from freshline.planning.analysis.utilization import fits, utilization
from freshline.planning.plan.counted_costs import count_cores
from freshline.planning.plan.plan import Plan, QueryPlan
from freshline.planning.plan.query_loads import query_loads
from freshline.planning.plan.slow_tables import slow_tables


@dataclass(frozen=True, slots=True)
class QueriesPlan:
    """The queries of one pool, in the order of definition."""

    queries: tuple[QueryPlan, ...]
    utilization: float  # of all queries, at their full costs
    fits: bool


# The rule of shedding by policy; the others shed nothing.
_RULES: dict[PolicyName, Rule] = {"lrm": "least-error", "lrm-paper": "paper"}


def plan_queries(pool: Pool, loads: Sequence[QueryLoad], learned: Mapping[str, int]) -> QueriesPlan:
    """Admits queries in the order of definition, and plans each track separately.

    `learned` has the number of answers that costs of queries were learned from.
    """
    tracks, refused = _admitted(loads, pool)
    plans: dict[str, QueryPlan] = {
        each.name: QueryPlan(pool.name, each, None, None, None, None, refused[each.name])
        for each in loads
        if each.name in refused
    }
    for number, track in enumerate(tracks):
        plans |= {plan.name: plan for plan in _on_track(pool, number, track)}
    costs, periods = [load.cost_us for load in loads], [load.period_us for load in loads]
    return QueriesPlan(
        tuple(replace(plans[load.name], learned_from_answers=learned.get(load.name, 0)) for load in loads),
        utilization(costs, periods) if loads else 0.0,
        fits(costs, periods, pool.tracks),
    )


def with_queries(plan: Plan, learned: Mapping[str, int]) -> Plan:
    """The plan of tables with its queries: their verdicts, their advice, and their demand on the pools."""
    warehouse, pools = plan.warehouse, list(plan.pools)
    plans: dict[str, QueryPlan] = {}
    for place, pool in enumerate(pools):
        loads = query_loads(warehouse, warehouse.pools[pool.name])
        if loads:
            planned = plan_queries(warehouse.pools[pool.name], loads, learned)
            plans |= {query.name: query for query in planned.queries}
            names = tuple(load.name for load in loads)
            pools[place] = replace(pool, utilization=planned.utilization, fits=planned.fits, queries=names)
    bounds_us = {**plan.steps_us, **{table.name: table.staleness_bound_us for table in plan.tables}}
    slow = slow_tables(warehouse, bounds_us)
    queries = tuple(replace(plans[name], held_back=slow.get(name)) for name in warehouse.queries)
    advice = (*plan.advice, *_advice(queries))
    return replace(plan, pools=tuple(pools), queries=queries, advice=advice)


def queries_hold(warehouse: Warehouse) -> bool:
    """Whether all queries are answered in time, with their cores counted."""
    warehouse = count_cores(warehouse)
    for pool in warehouse.pools.values():
        loads = query_loads(warehouse, pool)
        if loads and not all(query.holds for query in plan_queries(pool, loads, {}).queries):
            return False
    return True


def _advice(queries: Sequence[QueryPlan]) -> list[str]:
    """Advice for queries that are refused, may be late, or are held back by a table."""
    advice = []
    for query in queries:
        if query.refusal is not None:
            least_us = query.refusal.period_least_us
            remedy = "no stride up to an hour would do"
            if least_us is not None:
                as_long = query.load.deadline_us < query.load.period_us
                more = ", with a deadline as long," if as_long else ""
                remedy = f"a stride of {format_duration(least_us)}{more} would do"
            advice.append(f"Query {query.name} is refused: {query.refusal.reason}; {remedy}.")
        elif not query.holds:
            deadline = format_duration(query.load.deadline_us)
            may = "has no bound"
            if query.response_bound_us is not None:
                may = f"may take {format_duration(query.response_bound_us, up=True)}"
            advice.append(
                f"Query {query.name} {may}, and its deadline is {deadline}: `policy: lrm` would shed input "
                "so that it is met."
            )
        if query.held_back is not None:
            sentence = query.held_back.sentence(query.name)
            advice.append(f"{sentence[:1].upper()}{sentence[1:]}.")
    return advice


def _admitted(
    loads: Sequence[QueryLoad], pool: Pool
) -> tuple[list[list[QueryLoad]], dict[str, QueryRefusal]]:
    """The queries of each track, in the order of definition, and those that fit on none."""
    # Without preemption other queries wait for a whole iteration: that long at its least cost.
    at_least = loads if pool.preempts else [load._replace(part_us=load.least_us) for load in loads]
    tracks = range(pool.tracks)
    track_of = dict(zip((load.name for load in loads), placed(loads, pool.tracks), strict=True))
    groups = [[load for load in at_least if track_of[load.name] == number] for number in tracks]
    refused = {each.name: each for group in groups for each in admit(group)}
    kept = [[load for load in group if load.name not in refused] for group in groups]
    for load in at_least:
        # Another track may have room.
        track = _track_with_room(load, kept, at_least) if load.name in refused else None
        if track is not None:
            kept[track].append(load)
            track_of[load.name] = track
            del refused[load.name]
    admitted = [load for load in loads if load.name not in refused]
    return [[load for load in admitted if track_of[load.name] == number] for number in tracks], refused


def _track_with_room(
    load: QueryLoad, tracks: Sequence[Sequence[QueryLoad]], order: Sequence[QueryLoad]
) -> int | None:
    """The least loaded track on which it fits at its place in the order; None without one.

    Its place matters: of queries with one deadline the first in the order goes first.
    """

    def has_room(track: Sequence[QueryLoad]) -> bool:
        names = {load.name, *(each.name for each in track)}
        together = [each for each in order if each.name in names]
        return is_schedulable(together, [each.least_us for each in together])

    def share(track: Sequence[QueryLoad]) -> float:
        return utilization([each.cost_us for each in track], [each.period_us for each in track])

    by_share = sorted(range(len(tracks)), key=lambda number: share(tracks[number]))
    return next((number for number in by_share if has_room(tracks[number])), None)


def _on_track(pool: Pool, number: int, loads: Sequence[QueryLoad]) -> list[QueryPlan]:
    costs_us = [load.cost_us for load in loads]
    rule = _RULES.get(pool.policy)
    if rule is not None and loads:
        if not is_schedulable(loads):
            after = shed(loads, rule)
            assert after is not None, "least costs fit, or it would be refused"
            costs_us = after
        if rule == "least-error":
            costs_us = raised(loads, costs_us)
    return [
        QueryPlan(
            pool=pool.name,
            load=load,
            track=number,
            budget_us=None if rule is None else cost_us,
            keep=keep(load, cost_us),
            response_bound_us=response,
        )
        for load, cost_us, response in zip(loads, costs_us, response_us(loads, costs_us), strict=True)
    ]
