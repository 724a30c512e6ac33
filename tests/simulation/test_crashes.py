"""A runner that is gone and comes back: what it finds, what it is told, and what counts again."""

import io
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.language.policies import POLICIES, policies_for
from freshline.definitions.sections.cost import Cost
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.validation import validate
from freshline.planning.plan.make import make_plan
from freshline.simulation.conditions.conditions import Conditions, checked
from freshline.simulation.conditions.crashes import checked_crashes
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.simulated_run import SimulatedRun
from freshline.simulation.tables import SimulatedTables
from freshline.testing.builder import Builder
from freshline_lab.campaigns.recovery.recoveries import run_through
from freshline_lab.runs.warehouses import crowded_warehouse, random_crashes, random_outages, random_warehouse

S = SECOND
PROVEN = [name for name in policies_for("tables") if POLICIES[name].proven]
seeds = st.integers(0, 2**32)


def crashing(builder: Builder, end: int, *crashes: tuple[int, int]) -> tuple[SimulationResult, list[dict]]:
    log = io.StringIO()
    spans = [(start * S, back * S) for start, back in crashes]
    result = simulate(make_plan(builder.build()), end * S, crashes=spans, journal_to=log)
    return result, [json.loads(line) for line in log.getvalue().splitlines()]


def test_jobs_that_ran_are_lost_and_files_are_found_in_their_order():
    builder = (
        Builder(tracks=2).files("a", period=10, phase=10, cost=3).files("b", period=15, phase=15, cost=1)
    )
    _, (header, *lines) = crashing(builder, 60, (21, 42))
    assert header["crashes"] == [[21 * S, 42 * S]]
    (at,) = [number for number, line in enumerate(lines) if "restarted" in line]
    assert lines[at] == {"now": 42 * S, "restarted": {"a": 10 * S, "b": 15 * S}}
    # a's job of 20 was to end at 23; the files of 30 and 40 came meanwhile.
    told = [(event["arrived"], event["timestamp"] // S) for event in lines[at + 1]["events"]]
    assert (lines[at + 1]["now"], told) == (42 * S, [("a", 20), ("a", 30), ("b", 30), ("a", 40)])
    starts = [(start["start"], start["files"]) for start in lines[at + 1]["instructions"]]
    assert starts == [("a", [2]), ("b", [2])]


def test_a_file_that_one_of_two_tables_has_is_told_to_the_other_only():
    one = Builder(tracks=2).files("a", period=10, phase=10, cost=1).build()
    slower = replace(one.tables["a"], name="b", cost=Cost(8 * S, Fraction(0)))
    tables = {**one.tables, "b": slower}
    both = replace(one, tables=tables, topological_order=("a", "b"), released_by_files=frozenset("ab"))
    log = io.StringIO()
    simulate(make_plan(both), 40 * S, crashes=[(15 * S, 16 * S)], journal_to=log)
    _, *lines = map(json.loads, log.getvalue().splitlines())
    (at,) = [number for number, line in enumerate(lines) if "restarted" in line]
    assert lines[at]["restarted"] == {"a": 10 * S, "b": 0}
    (event,) = lines[at + 1]["events"]
    assert (event["timestamp"], event["tables"]) == (10 * S, ["b"])


def test_a_crash_at_the_very_end_of_a_job_loses_it():
    builder = Builder().files("a", period=10, phase=10, cost=2)
    _, (_, *lines) = crashing(builder, 30, (12, 13))
    assert next(line for line in lines if "restarted" in line)["restarted"] == {"a": 0}


def test_a_runner_may_be_back_at_once():
    result, (header, *lines) = crashing(Builder().files("a", period=10, phase=10, cost=2), 30, (11, 11))
    assert replay(kernel_of(header), lines, header) == (len(lines), None)
    assert result.tables[0].jobs == 2


def test_bounds_count_again_once_the_tables_are_fresh():
    builder = Builder().files("a", period=10, phase=10, cost=2).derived("d", ["a"], period=20, cost=1)
    result, _ = crashing(builder, 1_000, (205, 400))
    for table in result.tables:
        assert table.staleness_max_us > table.plan.staleness_bound_us >= table.asserted_max_us
    run = SimulatedRun(result.plan, 0, Conditions(crashes=((205 * S, 400 * S),)))
    compared = []
    run.kind(SimulatedTables).assertions.compared = lambda table, now, staleness_us: compared.append(
        (table, now)
    )
    run.run(1_000 * S)
    validate(run.kernel)
    assert {table for table, now in compared if now < 205 * S} == {"a", "d"}
    assert min(now for _, now in compared if now > 205 * S) > 400 * S
    assert {table for table, now in compared if now > 500 * S} == {"a", "d"}


def test_a_replay_without_the_header_cannot_go_on():
    _, (header, *lines) = crashing(Builder().files("a", period=10, phase=10, cost=2), 40, (15, 16))
    _, difference = replay(kernel_of(header), lines)
    assert difference is not None
    assert "no header says what it ran" in (difference.reason or "")


@pytest.mark.parametrize(
    ("crashes", "words"),
    [
        ([(0, 5)], "the crash at 0s does not lie within the run"),
        ([(6, 5)], "the crash at 6s does not lie within the run"),
        ([(99, 100)], "the crash at 1m 39s is not over when the run of 1m 40s is"),
        ([(200, 201)], "the crash at 3m 20s is not over when the run of 1m 40s is"),
        ([(30, 31), (10, 30)], "the crash at 30s begins before the previous one is over"),
        ([(10, 40), (20, 30)], "the crash at 20s begins before the previous one is over"),
    ],
)
def test_a_crash_that_cannot_be_is_bad_input(crashes, words):
    with pytest.raises(InputError, match=words):
        checked_crashes([(start * S, back * S) for start, back in crashes], 100 * S)


@sampled(80)
@given(seeds, st.sampled_from(PROVEN), st.booleans(), st.booleans())
def test_bounds_and_promises_hold_after_crashes_and_all_is_loaded_once(seed, policy, crowded, outages):
    warehouse = crowded_warehouse(seed) if crowded else random_warehouse(seed)
    conditions = checked(
        warehouse,
        800 * S,
        outages=random_outages(warehouse, seed, 200 * S) if outages else {},
        crashes=random_crashes(seed, 400 * S),
    )
    log = io.StringIO()
    kept = run_through(warehouse, policy, conditions, 800 * S, seed, log)
    assert not kept.wrong
    header, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(sorted({*policies_for("tables")} - {*PROVEN})))
def test_where_nothing_is_proven_all_is_loaded_once_all_the_same(seed, policy):
    warehouse = random_warehouse(seed)
    conditions = checked(warehouse, 500 * S, crashes=[(100 * S, 130 * S)])
    assert not run_through(warehouse, policy, conditions, 500 * S, seed).wrong
