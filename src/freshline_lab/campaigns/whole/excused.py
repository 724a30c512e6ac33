"""What the faults of a run excuse: the tables and outputs whose proofs assume that there are none."""

from __future__ import annotations

from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.conditions.crashes import delayed_by
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
    late = delayed_by(warehouse, plan.placed, (slow | conditions.failures.keys()) & warehouse.steps.keys())
    return downstream(warehouse, (), direct | late) & warehouse.tables.keys()


def excused_steps(plan: Plan, conditions: Conditions) -> frozenset[str]:
    """The steps that may be late: those of a fault, all that shares a node with one, and all downstream."""
    warehouse = plan.warehouse
    steps = warehouse.steps.keys()
    if conditions.crashes:
        return frozenset(steps)
    faulty = (_slow(conditions) | conditions.failures.keys()) & steps
    if plan.placed is not None:
        faulty |= {name for name, node in plan.placed.nodes.items() if node in conditions.node_crashes}
    begun = downstream(warehouse, conditions.outages, faulty)
    return delayed_by(warehouse, plan.placed, begun & steps)


def _slow(conditions: Conditions) -> set[str]:
    return {name for name, factor in conditions.slow.items() if factor > 1}
