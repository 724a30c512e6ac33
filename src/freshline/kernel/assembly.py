"""From a plan to the kernel that runs it, in simulated time or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from freshline.costs.bounds import worst_case_us
from freshline.definitions.duration import SECOND
from freshline.definitions.warehouse import ADAPTIVE, Table, Warehouse
from freshline.kernel.kernel import Kernel
from freshline.kernel.order import Order
from freshline.kernel.pool import Pool
from freshline.plan.plan import Plan, PoolPlan, TablePlan
from freshline.policies.edf import Edf, StrictEdf
from freshline.policies.fifo import Fifo
from freshline.policies.prp import Proportional
from freshline.policies.rm import RateMonotonic
from freshline.recovery.aus import Aus
from freshline.recovery.aus_slack import AusSlack
from freshline.recovery.events import Learned, LearnedCost
from freshline.recovery.modes import AdaptiveRelease, lacks_terms
from freshline.recovery.outages import RememberingRelease
from freshline.recovery.terms import Terms
from freshline.tables.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.tables.release import PeriodicRelease, StaleRelease
from freshline.tables.task import TableTask, tables_of

# A file is found so long after it came at most, on a machine that has other things to do.
_FINDING_US = SECOND

_ORDERS: dict[str, type[Order[Any]]] = {
    "fifo": Fifo,
    "rm": RateMonotonic,
    "edf": Edf,
    "edf-strict": StrictEdf,
}


def assemble(plan: Plan, now: int = 0, freshness: Mapping[str, int | None] | None = None) -> Kernel:
    """The kernel for a planned warehouse: at instant 0, all tables empty, or as it was found at `now`.

    `freshness` then says how far each table is loaded, None for one into which nothing was loaded yet.
    """
    kernel = Kernel()
    _add_tasks(kernel, plan, freshness)
    for pool in plan.pools:
        _add_pool(kernel, pool, plan.tables)
    kernel.begin(now)
    return kernel


def learned(kernel: Kernel, plan: Plan, live: bool = True) -> Learned:
    """What a plan with more costs says beyond the one that the kernel was assembled from.

    A bound that the kernel knows stays as it is: what tables recover by does not change under them.
    """
    index_of = {name: index for index, name in enumerate(plan.warehouse.tables)}
    tables: dict[str, LearnedCost] = {}
    for task, planned in zip(tables_of(kernel), plan.tables, strict=True):
        table = plan.warehouse.tables[task.name]
        terms = None
        if lacks_terms(task):
            terms = _terms(plan, table, planned, index_of, live)
        startup_us = _startup_us(table)
        if terms is not None or (planned.cost_us, startup_us) != (task.worst_case_us, task.startup_us):
            tables[task.name] = LearnedCost(planned.cost_us, startup_us, planned.provisioned_us, terms)
    return Learned(tables)


def _add_tasks(kernel: Kernel, plan: Plan, freshness: Mapping[str, int | None] | None) -> None:
    warehouse = plan.warehouse
    index_of = {name: index for index, name in enumerate(warehouse.tables)}
    tasks: dict[str, TableTask] = {}
    for name in warehouse.topological_order:
        table = warehouse.tables[name]
        intake = _intake(warehouse, table, tasks)
        planned = plan.tables[index_of[name]]
        task = TableTask(index_of[name], name, table.period_us, planned.cost_us, intake, _startup_us(table))
        if freshness is not None:
            task.freshness = freshness[name] or 0
            task.empty = freshness[name] is None
            intake.seen(task.freshness)
        tasks[name] = task
        if name not in warehouse.released_by_files:
            task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
            continue
        terms = _terms(plan, table, planned, index_of, live=freshness is not None)
        if terms is not None:
            task.rule = AdaptiveRelease(task, kernel.timers, terms)
        elif warehouse.pools[table.pool].policy in ADAPTIVE:
            phase_us = 0 if table.feed is None else warehouse.feeds[table.feed].phase_us
            task.rule = RememberingRelease(task, kernel.timers, phase_us)
        else:
            task.rule = StaleRelease(task, kernel.timers)
        for source in table.sources:
            tasks[source].dependents.append(task)
        if table.feed is not None:
            kernel.readers.setdefault(table.feed, []).append(task)
    kernel.tasks = [tasks[name] for name in warehouse.tables]


def _startup_us(table: Table) -> int:
    return worst_case_us(table.cost, 0) if table.cost and table.cost.startup_us else 0


def _terms(
    plan: Plan, table: Table, planned: TablePlan, index_of: Mapping[str, int], live: bool
) -> Terms | None:
    """On which terms a table recovers; None where its policy has no recovery, or nothing is bounded."""
    cost_us, period_us = planned.provisioned_us, planned.recovery_period_us
    response_us, bound_us = planned.response_bound_us, planned.staleness_bound_us
    if cost_us is None or period_us is None or response_us is None or bound_us is None:
        return None
    feed = None if table.feed is None else plan.warehouse.feeds[table.feed]
    return Terms(
        cost_us,
        period_us,
        table.late_after_us or bound_us,
        response_us,
        0 if feed is None else feed.jitter_us,
        min(_FINDING_US, table.period_us // 4) if live else 0,
        0 if feed is None else feed.phase_us,
        table.weight,
        tuple(plan.tables[index_of[source]].staleness_bound_us for source in table.sources),
        table.align_us or 0,
    )


def _intake(warehouse: Warehouse, table: Table, tasks: dict[str, TableTask]) -> Intake:
    if table.feed is None:
        return DerivedIntake([tasks[source] for source in table.sources], table.align_us)
    if warehouse.feeds[table.feed].arrival == "continuous":
        return ContinuousIntake()
    return FileIntake()


def _add_pool(kernel: Kernel, plan: PoolPlan, tables: Sequence[TablePlan]) -> None:
    if plan.policy == "clustered-edf" and plan.clusters is not None:
        # Clusters are pools of their own: nothing passes between them (paper 004, section 4.2).
        for number, cluster in enumerate(plan.clusters, start=1):
            members = [plan.tables[member] for member in cluster.members]
            _add_tracks(kernel, f"{plan.name}/{number}", cluster.tracks, Edf(), members)
    else:
        _add_tracks(kernel, plan.name, plan.tracks, _order(kernel, plan, tables), plan.tables)


def _add_tracks(
    kernel: Kernel, name: str, tracks: int, order: Order[Any], members: list[int] | tuple[int, ...]
) -> None:
    pool = Pool(name, tracks, _tracks_so_far(kernel), order, kernel.touched)
    kernel.pools.append(pool)
    for member in members:
        pool.join(kernel.tasks[member])


def _tracks_so_far(kernel: Kernel) -> int:
    return sum(pool.tracks for pool in kernel.pools)


def _order(kernel: Kernel, plan: PoolPlan, tables: Sequence[TablePlan]) -> Order[Any]:
    if plan.policy in ADAPTIVE:
        shares = {
            tables[index].name: (tables[index].provisioned_us or 1, tables[index].period_us)
            for index in plan.tables
        }
        if plan.policy == "aus":
            return Aus(shares, plan.tracks)
        return AusSlack(shares, plan.tracks, kernel.timers)
    if plan.policy != "prp":
        # A clustered pool that is overloaded has no clusters: it is run as one.
        return _ORDERS["edf" if plan.policy == "clustered-edf" else plan.policy]()
    assert plan.clusters is not None, "prp without clusters"
    cluster_of_task = {
        plan.tables[member]: number
        for number, cluster in enumerate(plan.clusters)
        for member in cluster.members
    }
    cluster_of_track = dict(
        enumerate(
            (number for number, cluster in enumerate(plan.clusters) for _ in range(cluster.tracks)),
            start=_tracks_so_far(kernel),
        )
    )
    return Proportional(cluster_of_task, cluster_of_track)
