"""Costs and terms of recovery, from a plan at the start and from a later plan that knows more."""

from __future__ import annotations

from collections.abc import Mapping

from freshline.definitions.language.policies import POLICIES
from freshline.definitions.sections.tables import Table
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.recovery.events import CostsLearned, LearnedCost
from freshline.kernel.recovery.modes import lacks_terms
from freshline.kernel.recovery.terms import FINDING_US, RecoveryTerms
from freshline.kernel.tables.task import tables_of
from freshline.planning.costs.bounds import worst_case_us
from freshline.planning.plan.blocking import PoolTasks, batch_limit
from freshline.planning.plan.plan import Plan, TablePlan


def learned(kernel: Kernel, plan: Plan, live: bool = True) -> CostsLearned:
    """What a plan with more costs adds to the plan that the kernel was assembled from.

    A bound that the kernel knows stays: the terms of a recovery do not change under a table. A table that is
    only in one of the two is left out.
    """
    plans = plan.tables_by_name
    tables: dict[str, LearnedCost] = {}
    for task in tables_of(kernel):
        planned = plans.get(task.name)
        if planned is None:
            continue
        table = plan.warehouse.tables[task.name]
        terms = None
        if lacks_terms(task):
            terms = terms_of(plan, plans, task.name, live)
        own_us = startup_us(table)
        if terms is not None or (planned.cost_us, own_us) != (task.worst_case_us, task.startup_us):
            tables[task.name] = LearnedCost(planned.cost_us, own_us, planned.provisioned_us, terms)
    return CostsLearned(tables, _batch_limits_us(kernel, plan))


def _batch_limits_us(kernel: Kernel, plan: Plan) -> dict[str, int]:
    """By kernel pool: how long its batches may be from now on, if that changes."""
    plans = plan.tables_by_name
    limits_us: dict[str, int] = {}
    for pool in kernel.pools:
        if pool.order.batch_limit_us == 0:
            continue  # a pool without batches stays so
        own = [plans[task.name] for task in tables_of(kernel) if task.pool is pool and task.name in plans]
        if not own or all(table.response_bound_us is None for table in own):
            continue  # still no bound that a batch could break
        planned = plan.warehouse.pools[own[0].pool]
        recovery = [table.recovery_period_us or table.period_us for table in own]
        tasks = PoolTasks(
            [table.provisioned_us or table.cost_us for table in own],
            [table.period_us for table in own],
            pool.tracks,
            recovery if POLICIES[planned.policy].adaptive else None,
        )
        limit_us = batch_limit(planned.policy, tasks, planned.counted_blocking_us)
        limit_us = NEVER if limit_us is None else limit_us
        if limit_us != pool.order.batch_limit_us:
            limits_us[pool.name] = limit_us
    return limits_us


def startup_us(table: Table) -> int:
    """The part of an update's cost that does not depend on its length; 0 if it is not known."""
    return worst_case_us(table.cost, 0) if table.cost and table.cost.startup_us else 0


def terms_of(plan: Plan, plans: Mapping[str, TablePlan], name: str, live: bool) -> RecoveryTerms | None:
    """The terms of a table's recovery; None if its policy has no recovery, or the table has no bound."""
    warehouse = plan.warehouse
    table, planned = warehouse.tables[name], plans[name]
    cost_us, period_us = planned.provisioned_us, planned.recovery_period_us
    response_us, bound_us = planned.response_bound_us, planned.staleness_bound_us
    if cost_us is None or period_us is None or response_us is None or bound_us is None:
        return None
    feed = None if table.feed is None else warehouse.feeds[table.feed]
    return RecoveryTerms(
        cost_us,
        period_us,
        table.late_after_us or bound_us,
        response_us,
        0 if feed is None else feed.jitter_us,
        min(FINDING_US, table.period_us // 4) if live else 0,
        0 if feed is None else feed.phase_us,
        table.weight,
        tuple(_bound_us(plan, plans, source) for source in table.sources),
        table.align_us or 0,
    )


def _bound_us(plan: Plan, plans: Mapping[str, TablePlan], source: str) -> int | None:
    """A(V) of a table or a step."""
    return plans[source].staleness_bound_us if source in plans else plan.steps_us.get(source)
