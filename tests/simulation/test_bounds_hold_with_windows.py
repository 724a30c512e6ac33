"""Staleness never exceeds the bound, with windows and lateness too."""

import random
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.sections.feeds import Feed, Landing
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan
from freshline.simulation.simulate import simulate
from freshline_lab.runs.warehouses import random_warehouse


def with_lateness(feed: Feed, rng: random.Random) -> Feed:
    if feed.arrival != "files" or feed.period_us is None:
        return feed
    return replace(feed, landing=Landing(lateness_us=rng.choice((0, rng.randint(0, 3 * feed.period_us)))))


def with_windows(table: Table, rng: random.Random) -> Table:
    """Most derived tables get windows, at the cost that they had for an update of one period."""
    if table.feed is not None or table.cost is None or rng.random() < 0.2:
        return table
    period_us = table.period_us
    align_us = rng.choice((period_us, max(1, period_us // 2), rng.randint(1, period_us), 1, 2))
    longest_us = -(-period_us // align_us) * align_us
    return replace(
        table, align_us=align_us, cost=replace(table.cost, rate=table.cost.rate * period_us / longest_us)
    )


def live_warehouse(seed: int) -> Warehouse:
    warehouse = random_warehouse(seed)
    rng = random.Random(f"live:{seed}")
    return replace(
        warehouse,
        feeds={name: with_lateness(feed, rng) for name, feed in warehouse.feeds.items()},
        tables={name: with_windows(table, rng) for name, table in warehouse.tables.items()},
    )


@sampled(150)
@given(st.integers(min_value=0, max_value=2**32))
@example(458)  # its first update would cost more than the plan says, if windows were rounded up from 0
@example(1096)
def test_simulated_staleness_never_exceeds_the_bound_with_windows_and_lateness(seed):
    plan = make_plan(live_warehouse(seed))
    result = simulate(plan, 200 * SECOND, seed)
    for table in result.tables:
        assert table.plan.staleness_bound_us is not None
        assert table.staleness_max_us <= table.plan.staleness_bound_us, table.plan.name
