"""Costs as they are while all tracks are busy.

A cost e counts as factor·e + stages·w. The factor says how the tracks share the cores. Spark does not
interrupt a task, so after each stage a job may wait for w, the longest task of another job on the same Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from freshline.definitions.sections.classes import PART_MOST_US
from freshline.definitions.sections.cost import Cost
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.costs.bounds import longest_update_us, worst_case_us
from freshline.planning.costs.cores import SparkCores, spark_cores
from freshline.planning.costs.step_rows import rows_of_steps
from freshline.planning.plan.query_loads import query_loads

_RATE_GRAIN = 1_000_000


class _JobKind(NamedTuple):
    """The jobs of one table, step, query or pool of requests, as others on the same Spark meet them."""

    name: str
    task_us: int  # its longest task
    tasks: int | None  # at once; None if unknown


def count_cores(warehouse: Warehouse) -> Warehouse:
    """The warehouse with all costs as they are while all tracks are busy, where the cores are known.

    To count twice makes no difference: a counted cost is marked as one of busy tracks.
    """
    waits, loads = _waits(warehouse)
    if not waits:
        return warehouse
    tables = {}
    for name, table in warehouse.tables.items():
        at = waits.get(warehouse.pools[table.pool].node)
        tables[name] = replace(table, cost=_counted(table.cost, name, [at] if at else []))
    steps = {}
    for name, step in warehouse.steps.items():
        at_nodes = [waits[node] for node in warehouse.nodes_of(name) if node in waits]
        steps[name] = replace(step, cost=_counted(step.cost, name, at_nodes, on_nodes=True))
    queries = {}
    for name, query in warehouse.queries.items():
        at = waits.get(warehouse.pools[query.pool].node)
        cost = query.cost
        if at is not None and name in loads and (cost is None or not cost.loaded):
            cost = _counted_query(loads[name], cost, query.window_us, at)
        queries[name] = replace(query, cost=cost)
    return replace(warehouse, tables=tables, steps=steps, queries=queries)


class Slowdown(NamedTuple):
    """The most that costs on one Spark grow while all tracks are busy."""

    spark: SparkCores
    factor: Fraction
    wait_us: int


def slowdowns(warehouse: Warehouse) -> list[Slowdown]:
    """Of each Spark with known cores, before they are counted."""
    waits, _ = _waits(warehouse)
    costs: dict[str | None, list[tuple[str, Cost | None]]] = {node: [] for node in waits}
    for table in warehouse.tables.values():
        costs.get(warehouse.pools[table.pool].node, []).append((table.name, table.cost))
    for query in warehouse.queries.values():
        costs.get(warehouse.pools[query.pool].node, []).append((query.name, query.cost))
    for name, step in warehouse.steps.items():
        for node in warehouse.nodes_of(name):
            costs.get(node, []).append((name, step.cost))
    found = []
    for at, wait in waits.items():
        alone = [(name, cost) for name, cost in costs[at] if cost is None or not cost.loaded]
        factor = max((wait.factor(cost) for _, cost in alone), default=Fraction(1))
        wait_us = max(((cost.stages if cost else 1) * wait.task_us(name) for name, cost in alone), default=0)
        found.append(Slowdown(wait.spark, factor, wait_us))
    return found


def _waits(warehouse: Warehouse) -> tuple[dict[str | None, _Waits], dict[str, QueryLoad]]:
    """By node with known cores what jobs wait for there, and the loads of queries."""
    sparks = spark_cores(warehouse)
    if not sparks:
        return {}, {}
    loads = {load.name: load for pool in warehouse.pools.values() for load in query_loads(warehouse, pool)}
    jobs = _jobs(warehouse, loads)
    speeds: dict[str | None, Fraction] = {name: node.speed for name, node in warehouse.nodes.items()}
    waits = {node: _Waits(spark, jobs[node], speeds.get(node, Fraction(1))) for node, spark in sparks.items()}
    return waits, loads


class _Waits:
    """What a job on one Spark waits for: a share of its cores, and the running tasks of others."""

    def __init__(self, spark: SparkCores, jobs: Sequence[_JobKind], speed: Fraction) -> None:
        self.speed = speed
        self.spark = spark
        self._jobs = sorted(jobs, key=lambda job: -job.task_us)[:2]
        most = max((min(job.tasks or spark.cores, spark.cores) for job in jobs), default=1)
        # With a core for every task of every track a task starts at once.
        self._is_crowded = spark.tracks > 1 and spark.tracks * most > spark.cores

    def factor(self, cost: Cost | None) -> Fraction:
        return self.spark.factor(None if cost is None else cost.tasks)

    def task_us(self, name: str) -> int:
        """The longest task of any other job."""
        if not self._is_crowded:
            return 0
        return next((job.task_us for job in self._jobs if job.name != name), 0)


def _counted(cost: Cost | None, name: str, waits: Sequence[_Waits], on_nodes: bool = False) -> Cost | None:
    """The cost on the worst of the Sparks that the job may run on; of a step, for a node of speed 1."""
    if cost is None or cost.loaded or not waits:
        return cost
    factor = max(each.factor(cost) for each in waits)
    wait_us = cost.stages * max(each.task_us(name) * (each.speed if on_nodes else 1) for each in waits)
    return replace(
        cost,
        startup_us=ceil(factor * cost.startup_us + wait_us / (1 + cost.variability)),
        rate=factor * cost.rate,
        per_row_us=factor * cost.per_row_us,
        loaded=True,
    )


def _counted_query(load: QueryLoad, cost: Cost | None, window_us: int, waits: _Waits) -> Cost:
    """The cost of an answer: every part of it is a job, and waits."""
    factor = waits.factor(cost)
    wait_us = (1 if cost is None else cost.stages) * waits.task_us(load.name)
    parts = -(-load.cost_us // max(1, load.part_us))
    fixed_us = ceil(factor * load.fixed_us) + wait_us
    cost_us = ceil(factor * load.cost_us) + parts * wait_us
    rate = Fraction(ceil(Fraction(max(0, cost_us - fixed_us) * _RATE_GRAIN, window_us)), _RATE_GRAIN)
    return Cost(fixed_us, rate, loaded=True)


def _jobs(warehouse: Warehouse, loads: Mapping[str, QueryLoad]) -> dict[str | None, list[_JobKind]]:
    """By node, the jobs that may run there. Costs that are unknown are left out."""
    found: dict[str | None, list[_JobKind]] = {node: [] for node in warehouse.nodes or (None,)}
    for name, table in warehouse.tables.items():
        if table.cost is not None:
            feed = None if table.feed is None else warehouse.feeds[table.feed]
            worst_us = worst_case_us(table.cost, longest_update_us(table, feed))
            found[warehouse.pools[table.pool].node].append(_job(name, table.cost, worst_us))
    rows = rows_of_steps(warehouse)
    for name, step in warehouse.steps.items():
        if step.cost is not None:
            work = step.cost.startup_us + step.cost.per_row_us * (rows[name].read or 0)
            worst = (1 + step.cost.variability) * work
            for node in warehouse.nodes_of(name):
                speed = warehouse.nodes[node].speed
                found[node].append(_job(name, step.cost, ceil(worst / speed)))
    for name, query in warehouse.queries.items():
        if name in loads:
            part_us = min(loads[name].cost_us, loads[name].part_us or loads[name].cost_us)
            found[warehouse.pools[query.pool].node].append(_job(name, query.cost, part_us))
    for each in warehouse.classes.values():
        found[warehouse.pools[each.pool].node].append(_JobKind(f"class {each.name}", PART_MOST_US, None))
    return found


def _job(name: str, cost: Cost | None, whole_us: int) -> _JobKind:
    if cost is None:
        return _JobKind(name, whole_us, None)
    return _JobKind(name, whole_us if cost.task_us is None else cost.task_us, cost.tasks)
