"""What the faults of a run excuse: the tables and outputs whose proofs assume that there are none."""

from __future__ import annotations

from collections.abc import Iterable

from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.conditions.outages import downstream


def excused_tables(plan: Plan, conditions: Conditions) -> frozenset[str]:
    """The tables without a bound to compare: work in their pool, or upstream, costs more than planned.

    Outages, crashes and failures of tables excuse a table only for a while, which the simulation knows by
    itself. Steps that fail or are slow excuse for good what they make late.
    """
    warehouse = plan.warehouse
    slow = _slow(conditions)
    pools = {warehouse.tables[name].pool for name in slow & warehouse.tables.keys()}
    pools |= {warehouse.classes[name].pool for name in slow & warehouse.classes.keys()}
    direct = {name for name, table in warehouse.tables.items() if table.pool in pools}
    late = _beside(plan, (slow | conditions.failures.keys()) & warehouse.steps.keys())
    return downstream(warehouse, (), direct | late) & warehouse.tables.keys()


def excused_steps(plan: Plan, conditions: Conditions) -> frozenset[str]:
    """The steps that may be late: those of a fault, all that shares a node with one, and all downstream."""
    warehouse = plan.warehouse
    steps = warehouse.steps.keys()
    if conditions.crashes:
        return frozenset(steps)
    faulty = (_slow(conditions) | conditions.failures.keys()) & steps
    begun = downstream(warehouse, conditions.outages, faulty)
    return _beside(plan, begun & steps)


def _slow(conditions: Conditions) -> set[str]:
    return {name for name, factor in conditions.slow.items() if factor > 1}


def _beside(plan: Plan, begun: Iterable[str]) -> frozenset[str]:
    warehouse, placed = plan.warehouse, plan.placed
    found = frozenset(begun)
    while placed is not None:
        nodes = {placed.nodes[name] for name in found}
        there = {name for name, node in placed.nodes.items() if node in nodes}
        more = _steps_below(warehouse, found | there)
        if more == found:
            break
        found = more
    return found


def _steps_below(warehouse: Warehouse, steps: Iterable[str]) -> frozenset[str]:
    return downstream(warehouse, (), steps) & warehouse.steps.keys()
