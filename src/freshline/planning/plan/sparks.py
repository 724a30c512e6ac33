"""The Sparks of a plan: how their tracks share the cores, and the least number of cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.nodes import is_local
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.counted_costs import Slowdown, count_cores, slowdowns
from freshline.planning.plan.make import tables_that_hold
from freshline.planning.plan.plan import Plan, SparkPlan
from freshline.planning.plan.queries import queries_hold

# The largest number of cores that is tried.
_CORES_MAX = 256


def with_sparks(plan: Plan) -> Plan:
    """The plan with its Sparks of known cores. Steps stay where the plan has them."""
    placed, declared = plan.placed, plan.declared
    if declared is None or (declared.steps and placed is None):
        return plan
    nodes = None if placed is None else placed.nodes
    sparks = tuple(
        SparkPlan(each.spark, each.factor, each.wait_us, _cores_least(declared, each, nodes))
        for each in slowdowns(declared)
    )
    return replace(plan, sparks=sparks)


def _cores_least(declared: Warehouse, slowdown: Slowdown, nodes: Mapping[str, str] | None) -> int | None:
    """The least number of cores with the present tracks; None if no number up to 256 is enough.

    A job that is not known to use fewer tasks was measured on the present cores. More cores never make a job
    slower, so the numbers are bisected.
    """
    declared = _with_tasks(declared, slowdown.spark.cores)
    if not _holds(_with_cores(declared, slowdown, _CORES_MAX), nodes):
        return None
    low, high = 1, _CORES_MAX
    while low < high:
        middle = (low + high) // 2
        if _holds(_with_cores(declared, slowdown, middle), nodes):
            high = middle
        else:
            low = middle + 1
    return high


def _holds(warehouse: Warehouse, nodes: Mapping[str, str] | None) -> bool:
    """Whether all is proven, with the steps on these nodes."""
    placed = None
    if nodes is not None:
        from freshline.planning.plan.outputs import plan_outputs  # the solver is slow to load

        found = plan_outputs(count_cores(warehouse), kept=nodes)
        if not all(output.holds for output in found.outputs):
            return False
        placed = found.placed
    return tables_that_hold(warehouse, placed) >= warehouse.tables.keys() and queries_hold(warehouse)


def _with_tasks(warehouse: Warehouse, tasks: int) -> Warehouse:
    """The warehouse with that number of tasks in every cost that says none."""

    def known(cost: Cost | None) -> Cost | None:
        return cost if cost is None or cost.tasks is not None else replace(cost, tasks=tasks)

    return replace(
        warehouse,
        tables={name: replace(each, cost=known(each.cost)) for name, each in warehouse.tables.items()},
        steps={name: replace(each, cost=known(each.cost)) for name, each in warehouse.steps.items()},
        queries={name: replace(each, cost=known(each.cost)) for name, each in warehouse.queries.items()},
    )


def _with_cores(declared: Warehouse, slowdown: Slowdown, cores: int) -> Warehouse:
    node = slowdown.spark.node
    if node is None:
        return replace(declared, cores=cores)
    here = is_local(declared.nodes[node].master)
    changed = {"master": f"local[{cores}]"} if here else {"cores": cores}
    nodes = {**declared.nodes, node: replace(declared.nodes[node], **changed)}
    # The machine gets as many more: what other Sparks there take does not change.
    more = cores - slowdown.spark.cores if here else 0
    machine = None if declared.cores is None else max(1, declared.cores + more)
    return replace(declared, nodes=nodes, cores=machine)
