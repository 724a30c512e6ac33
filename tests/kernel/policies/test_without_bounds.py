"""`aus` and `aus-slack` without bounds: there is no recovery mode, and tables catch up as with `edf`."""

import io
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.state import exceeds
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if, without_bounds
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.outages import Outages, checked_outages
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.observation import SimulatedObservation
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline.testing.script import Schedule, play
from freshline_lab.runs.warehouses import random_outages, random_warehouse

ADAPTIVE: list[PolicyName] = ["aus", "aus-slack"]


def overloaded(warehouse: Warehouse) -> Warehouse:
    """The same with declared costs that are too high for every pool: above the tables' periods."""
    tables = {
        name: replace(table, cost=Cost(table.period_us + 1, Fraction(0)))
        for name, table in warehouse.tables.items()
    }
    return replace(warehouse, tables=tables)


def run(
    plan: Plan, actual: Warehouse, outages: Outages, seed: int, end: int
) -> tuple[SimulatedObservation, list[str]]:
    """Simulates a plan with other costs than it knows of: what was seen, and the journal's calls."""
    stream = io.StringIO()
    kernel = assemble(plan)
    costs = {name: CostDraws(table.cost, seed, name) for name, table in actual.tables.items() if table.cost}
    files = {
        name: files_of(feed, seed, outages.get(name, ()))
        for name, feed in actual.feeds.items()
        if feed.arrival == "files"
    }
    updates = SimulatedUpdates(costs)
    SimulatedDriver(kernel, {Update: updates}, files, Journal(stream, {})).run(end)
    validate(kernel)
    return updates.observation, stream.getvalue().splitlines()[1:]


@sampled(80)
@given(st.integers(0, 10**6), st.sampled_from(ADAPTIVE), st.booleans())
def test_without_bounds_they_say_the_same_as_edf_at_every_instant(seed, policy, unknown):
    """Whether it is that costs are not known, or that they are declared too high."""
    actual = random_warehouse(seed)
    outages = checked_outages(actual, random_outages(actual, seed, 150 * SECOND))
    declared = actual if unknown else overloaded(actual)

    def journal(name: PolicyName) -> list[str]:
        plan = make_plan(what_if(declared, name, {}))
        if unknown:
            plan = without_bounds(plan, frozenset(actual.tables))
        assert all(pool.behaves_as(plan.tables) == "edf" for pool in plan.pools if pool.tables)
        return run(plan, actual, outages, seed, 300 * SECOND)[1]

    assert journal(policy) == journal("edf")


def four_tables(policy: PolicyName, cost: Fraction) -> Plan:
    builder = Builder(tracks=2, policy=policy)
    for number in range(4):
        builder.files(f"t{number}", period=10, phase=10, cost=cost)
    return make_plan(builder.build())


def played(plan: Plan) -> Schedule:
    """Updates take half of what is declared; at 100 seven files come at once to each table."""
    kernel = assemble(plan)
    arrivals = [(max(at, 100) * SECOND if at > 30 else at * SECOND, at * SECOND) for at in range(10, 325, 10)]
    tables = [task.name for task in kernel.tasks]
    costs = {table: [2_500_000] for table in tables}
    return play(kernel, 325 * SECOND, costs, dict.fromkeys(tables, arrivals))


@pytest.mark.parametrize("policy", ADAPTIVE)
def test_tables_catch_up_after_an_outage_although_the_declared_costs_are_a_little_too_high(policy):
    """U is 2.04 of two tracks, which in truth are half idle."""
    schedule = played(four_tables(policy, Fraction(51, 10)))
    for number in range(4):
        last = schedule.of(f"t{number}")[-1]
        assert last.loaded_to == 320 * SECOND


@pytest.mark.parametrize("policy", ADAPTIVE)
def test_a_table_without_a_bound_catches_up_in_a_pool_whose_others_have_bounds(policy):
    """Its source is in a pool that is overloaded, as far as anybody knows."""
    warehouse = (
        Builder(policy=policy)
        .pool("other", policy="edf")
        .files("source", period=10, phase=10, cost=11, pool="other")
        .derived("view", ["source"], period=10, cost=1)
        .files("bounded", period=10, phase=10, cost=4)
        .build()
    )
    plan = make_plan(warehouse)
    assert [table.staleness_bound_us is None for table in plan.tables] == [True, True, False]
    kernel = assemble(plan)
    arrivals = [(max(at, 100) * SECOND if at > 30 else at * SECOND, at * SECOND) for at in range(10, 205, 10)]
    files = {"source": arrivals, "bounded": [(at * SECOND, at * SECOND) for at in range(10, 205, 10)]}
    costs = {"source": [SECOND], "view": [SECOND], "bounded": [4 * SECOND]}
    schedule = play(kernel, 209 * SECOND, costs, files)
    assert schedule.of("view")[-1].loaded_to == 200 * SECOND
    assert [isinstance(task.rule, AdaptiveRelease) for task in kernel.tasks] == [False, False, True]


@sampled(60)
@given(st.integers(0, 10**6), st.sampled_from(ADAPTIVE))
def test_tables_that_start_early_for_want_of_a_bound_leave_the_others_theirs(seed, policy):
    """Of two pools one is not bounded: what reads it in the other starts early, to nobody's harm there.

    Feeds have outages there, so that there is something to catch up with. (A feed has its table's name.)
    """
    actual = what_if(random_warehouse(seed), policy, {})
    unknown = frozenset(name for name, table in actual.tables.items() if table.pool == "pool1")
    plan = without_bounds(make_plan(actual), unknown)
    outages = random_outages(actual, seed, 150 * SECOND)
    broken = {feed: times for feed, times in outages.items() if feed in unknown}
    observed, _ = run(plan, actual, checked_outages(actual, broken), seed, 300 * SECOND)
    for table in plan.tables:
        staleness_us = observed.tables[table.name].staleness_max_us
        assert not exceeds(staleness_us, table.staleness_bound_us), table.name
