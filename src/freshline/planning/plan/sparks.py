"""The Sparks of a plan: how their tracks share the cores, and the least number of cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshline.definitions.sections.cost import Cost
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.counted_costs import Slowdown, slowdowns
from freshline.planning.plan.plan import SparkPlan

# With a core for each task that the tracks can run at once more cores change nothing; so many are tried.
_CORES_MAX = 256


def spark_plans(declared: Warehouse, holds: Callable[[Warehouse], bool]) -> tuple[SparkPlan, ...]:
    """The Sparks with known cores; `holds` says whether all targets of a warehouse are proven."""
    return tuple(
        SparkPlan(each.spark, each.factor, each.wait_us, _cores_least(declared, each, holds))
        for each in slowdowns(declared)
    )


def _cores_least(declared: Warehouse, slowdown: Slowdown, holds: Callable[[Warehouse], bool]) -> int | None:
    """The least number of cores with the present tracks; None if no number up to 256 is enough.

    A job that is not known to use fewer tasks was measured on the present cores. More cores never make a job
    slower, so the numbers are bisected.
    """
    declared = _with_tasks(declared, slowdown.spark.cores)
    if not holds(_with_cores(declared, slowdown, _CORES_MAX)):
        return None
    low, high = 1, _CORES_MAX
    while low < high:
        middle = (low + high) // 2
        if holds(_with_cores(declared, slowdown, middle)):
            high = middle
        else:
            low = middle + 1
    return high


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
    is_local = declared.nodes[node].master.startswith("local")
    changed = {"master": f"local[{cores}]"} if is_local else {"cores": cores}
    nodes = {**declared.nodes, node: replace(declared.nodes[node], **changed)}
    # On a machine of its own: what other Sparks there take does not change.
    more = cores - slowdown.spark.cores if is_local else 0
    machine = None if declared.cores is None else max(1, declared.cores + more)
    return replace(declared, nodes=nodes, cores=machine)
