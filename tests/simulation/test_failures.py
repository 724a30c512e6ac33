"""Jobs that fail: when they are tried again, whose bounds count meanwhile, and that nothing is lost."""

import io
import json
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.language.policies import POLICIES, policies_for
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.conditions.failures import JobFailures, checked_failures
from freshline.simulation.conditions.outages import downstream
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.testing.builder import Builder
from freshline_lab.campaigns.recovery.recoveries import run_through
from freshline_lab.runs.warehouses import (
    crowded_warehouse,
    random_crashes,
    random_failures,
    random_gaps,
    random_outages,
    random_warehouse,
)

S = SECOND
PROVEN = [name for name in policies_for("tables") if POLICIES[name].proven]
seeds = st.integers(0, 2**32)


def failing(builder: Builder, rates: dict[str, Fraction], end: int, seed: int = 0) -> SimulationResult:
    return simulate(make_plan(builder.build()), end * S, seed, failures=rates)


def by_name(result: SimulationResult) -> dict:
    return {table.plan.name: table for table in result.tables}


# -- how jobs fail -----------------------------------------------------------------------------------------


def test_attempts_are_ever_further_apart_up_to_a_minute_until_one_ends_well():
    failures = JobFailures({"a": Fraction(999_999, 1_000_000)}, 0)
    waits = [failures.fails("a", 0) for _ in range(9)]
    assert [wait / S for wait in waits] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert failures.is_failing("a")
    failures.forget()
    assert failures.fails("a", 10 * S) == 10.5 * S
    assert failures.count == {"a": 10}


def test_a_success_ends_the_back_off():
    failures = JobFailures({"a": Fraction(1, 2)}, 0)
    waits = [failures.fails("a", 0) for _ in range(200)]
    assert {after for before, after in pairwise(waits) if before is None} == {None, S // 2}
    assert 70 < failures.count["a"] < 130


def test_tables_that_are_not_named_never_fail():
    failures = JobFailures({"a": Fraction(99, 100)}, 0)
    assert [failures.fails("b", 0) for _ in range(100)] == [None] * 100


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(policies_for("tables")))
def test_a_rate_of_zero_changes_nothing(seed, policy):
    """Failures are drawn from a stream of their own."""
    plan = make_plan(what_if(random_warehouse(seed), policy, {}))

    def calls(**changes) -> str:
        log = io.StringIO()
        simulate(plan, 60 * S, seed, journal_to=log, **changes)
        return log.getvalue().split("\n", 1)[1]

    assert calls(failures=dict.fromkeys(plan.warehouse.tables, Fraction(0))) == calls()


def test_failed_jobs_are_counted_and_cost_time():
    builder = Builder().files("a", period=10, phase=10, cost=2).derived("d", ["a"], period=20, cost=1)
    usual, troubled = failing(builder, {}, 1_000), failing(builder, {"a": Fraction(1, 4)}, 1_000)
    a, d = troubled.tables
    assert a.failed > 10
    assert d.failed == 0
    assert troubled.pools[0].busy > usual.pools[0].busy
    assert a.staleness_max_us > usual.tables[0].staleness_max_us


def test_a_table_that_fails_at_the_end_is_failed_and_what_reads_it_too():
    builder = Builder().files("a", period=10, phase=10, cost=2).derived("d", ["a"], period=20, cost=1)
    builder.files("b", period=10, phase=10, cost=1)
    result = failing(builder, {"a": Fraction(999_999, 1_000_000)}, 1_000)
    assert [table.state for table in result.tables] == ["FAILED", "UPSTREAM_FAILED", "HEALTHY"]
    assert [table.jobs for table in result.tables][:2] == [0, 0]


def test_the_rates_are_in_the_log():
    log = io.StringIO()
    plan = make_plan(Builder().files("a", period=10, phase=10, cost=2).build())
    simulate(plan, 100 * S, failures={"a": Fraction(1, 4)}, journal_to=log)
    assert json.loads(log.getvalue().splitlines()[0])["failures"] == {"a": "1/4"}


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"b": Fraction(1, 2)}, "the failing table `b` does not exist"),
        ({"a": Fraction(1)}, "the table `a` fails at the rate 1"),
        ({"a": Fraction(-1, 2)}, "the table `a` fails at the rate -1/2"),
    ],
)
def test_a_rate_that_cannot_be_is_bad_input(rates, words):
    with pytest.raises(InputError, match=words):
        checked_failures(Builder().files("a", period=10).build(), rates)


# -- whose bounds count ------------------------------------------------------------------------------------


@sampled(60)
@given(seeds, st.sampled_from(PROVEN), st.booleans())
def test_no_other_tables_bound_suffers_from_a_failure(seed, policy, crowded):
    """Those that neither fail nor read what fails are asserted throughout."""
    warehouse = what_if(crowded_warehouse(seed) if crowded else random_warehouse(seed), policy, {})
    by_files = [name for name in warehouse.tables if name in warehouse.released_by_files]
    rates = {name: Fraction(9, 10) for name in by_files[: len(by_files) // 2]}
    result = simulate(make_plan(warehouse), 400 * S, seed, failures=rates)
    reached = downstream(warehouse, (), rates)
    for name, table in by_name(result).items():
        assert not table.exceeded_bound
        if name not in reached:
            assert table.asserted_max_us == table.staleness_max_us


def test_a_table_that_failed_is_asserted_again_once_it_is_fresh():
    builder = Builder().files("a", period=10, phase=10, cost=2).derived("d", ["a"], period=20, cost=1)
    result = failing(builder, {"a": Fraction(1, 2)}, 2_000)
    for table in result.tables:
        assert table.staleness_max_us > table.plan.staleness_bound_us >= table.asserted_max_us
        assert table.state == "HEALTHY"


def test_where_a_periodic_table_fails_nothing_of_its_pool_is_asserted_any_more():
    builder = Builder().continuous("a", period=10, cost=4).files("b", period=10, phase=5, cost=4)
    builder.pool("others").files("c", period=10, phase=10, cost=2, pool="others")
    result = failing(builder, {"a": Fraction(1, 2)}, 2_000)
    a, b, c = result.tables
    assert a.failed > 50
    # b is as stale as it was before the first failure, and would be above its bound afterwards.
    assert b.asserted_max_us < b.plan.staleness_bound_us < b.staleness_max_us
    assert c.asserted_max_us == c.staleness_max_us


# -- all together ------------------------------------------------------------------------------------------


@sampled(80)
@given(seeds, st.sampled_from(PROVEN), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_bounds_and_promises_hold_and_all_is_loaded_once(seed, policy, crowded, outages, gaps, crashes):
    """With failures, crashes, outages and time without rows; and the journal replays, call by call."""
    warehouse = crowded_warehouse(seed) if crowded else random_warehouse(seed)
    conditions = checked(
        warehouse,
        500 * S,
        outages=random_outages(warehouse, seed, 200 * S) if outages else {},
        gaps=random_gaps(warehouse, seed, 200 * S) if gaps else {},
        failures=random_failures(warehouse, seed),
        crashes=[span for span in random_crashes(seed, 200 * S) if span[1] < 500 * S] if crashes else (),
    )
    log = io.StringIO()
    kept = run_through(warehouse, policy, conditions, 500 * S, seed, log)
    assert not kept.wrong
    header, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)


def test_there_are_failures_recoveries_and_promises_among_them():
    failures = files = promised = 0
    for seed in range(12):
        warehouse = crowded_warehouse(seed)
        conditions = checked(
            warehouse,
            2_000 * S,
            outages=random_outages(warehouse, seed, 600 * S),
            failures=random_failures(warehouse, seed),
        )
        kept = run_through(warehouse, ("aus", "aus-slack")[seed % 2], conditions, 2_000 * S, seed)
        failures, files = failures + kept.failures, files + kept.files
        promised += sum(recovery.due is not None for recovery in kept.recoveries)
        assert not kept.wrong
    assert failures > 100
    assert files > 1_000
    assert promised > 5


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_a_failure_gives_no_certificate_up(seed):
    warehouse = what_if(crowded_warehouse(seed), "aus-slack", {})
    outages = random_outages(warehouse, seed, 300 * S)
    rates = random_failures(warehouse, seed)
    result = simulate(make_plan(warehouse), 900 * S, seed, outages=outages, failures=rates)
    assert [pool.given_up for pool in result.pools] == [()]
