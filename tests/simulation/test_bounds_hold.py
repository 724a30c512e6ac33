"""Theorem 1 of paper 004 and Theorems 2 and 3 of paper 001, as a property: S(V, t) <= A(V)."""

from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.planning.plan.make import make_plan
from freshline.simulation.simulate import simulate
from freshline_lab.runs.warehouses import WarehouseShape, random_warehouse

seeds = st.integers(min_value=0, max_value=2**32)


@sampled(250)
@given(seeds)
def test_simulated_staleness_never_exceeds_the_bound(seed):
    plan = make_plan(random_warehouse(seed))
    result = simulate(plan, 200 * SECOND, seed)
    for table in result.tables:
        assert table.plan.staleness_bound_us is not None
        assert table.staleness_max_us <= table.plan.staleness_bound_us, table.plan.name


@sampled(60)
@given(seeds)
def test_the_bound_holds_for_many_tables_on_few_tracks(seed):
    shape = WarehouseShape(tables_max=40, tracks_max=3, policies=("edf", "edf-strict"), pools_max=1)
    plan = make_plan(random_warehouse(seed, shape))
    result = simulate(plan, 100 * SECOND, seed)
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


@sampled(60)
@given(seeds)
def test_jobs_answer_within_their_response_bound(seed):
    """Lemma 4 of paper 004: no job ends later than Θ after its release."""
    from freshline.kernel.assembly.assemble import assemble
    from freshline.kernel.tables.update import Update
    from freshline.planning.costs.draws import CostDraws
    from freshline.simulation.arrivals import FeedArrivals
    from freshline.simulation.driver import SimulatedDriver
    from freshline.simulation.updates import SimulatedUpdates
    from freshline.testing.script import Schedule

    warehouse = random_warehouse(seed)
    plan = make_plan(warehouse)
    schedule = Schedule()
    costs = {
        table.name: CostDraws(table.cost, seed, table.name)
        for table in warehouse.tables.values()
        if table.cost
    }
    files = {
        name: FeedArrivals(feed, seed) for name, feed in warehouse.feeds.items() if feed.arrival == "files"
    }
    SimulatedDriver(assemble(plan), {Update: SimulatedUpdates(costs, schedule)}, files).run(100 * SECOND)
    bounds = {table.name: table.response_bound_us for table in plan.tables}
    for job in schedule.jobs:
        bound_us = bounds[job.table]
        assert bound_us is not None
        assert job.finish - job.release <= bound_us
