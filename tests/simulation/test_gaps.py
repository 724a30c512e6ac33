"""Time in which feeds deliver no rows: derived tables jump over it, and nothing is lost by that."""

import io
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_bounds_hold_with_windows import live_warehouse

from cases import sampled
from freshline.base.duration import SECOND as S
from freshline.base.errors import InputError
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.intake import DerivedIntake
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.conditions.gaps import checked_gaps, gaps_of_sources, next_row
from freshline.simulation.conditions.spans import common, merged
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.lag import lag_points
from freshline.simulation.simulate import simulate
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline.testing.script import FixedCosts, FixedFiles
from freshline_lab.runs.warehouses import WarehouseShape, random_gaps, random_outages, random_warehouse

POLICIES = ["edf", "edf-strict", "clustered-edf", "aus", "aus-slack", "prp", "fifo", "rm"]
seeds = st.integers(min_value=0, max_value=2**32)
spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda span: (span[0], span[0] + span[1]))
).map(merged)


def within(instant: int, some: tuple[tuple[int, int], ...]) -> bool:
    return any(start <= instant < end for start, end in some)


# -- what a gap is -------------------------------------------------------------------------------------


@given(spans, spans)
def test_what_two_have_in_common_is_what_lies_in_both(some, others):
    both = common(some, others)
    for instant in range(90):
        assert within(instant, both) == (within(instant, some) and within(instant, others))


@given(spans, st.integers(0, 90))
def test_the_next_row_is_the_first_instant_outside(gaps, after):
    expected = next(instant for instant in range(after + 1, 200) if not within(instant, gaps))
    assert next_row(gaps, after) == expected


@given(spans, spans, spans, st.integers(1, 9))
def test_a_table_without_rows_upstream_has_none_and_windows_count_as_a_whole(a, b, c, align):
    builder = Builder().files("a", period=10).files("b", period=10).files("c", period=10)
    builder.derived("ab", ["a", "b"], period=10).derived("deep", ["ab", "c"], period=10)
    builder.derived("w", ["a"], period=10).derived("of_w", ["w"], period=10)
    warehouse = builder.build()
    tables = {**warehouse.tables, "w": replace(warehouse.tables["w"], align_us=align)}
    warehouse = replace(warehouse, tables=tables)
    gaps = checked_gaps(warehouse, {"a": a, "b": b, "c": c})
    by_table = gaps_of_sources(warehouse, gaps)
    assert by_table["a"] == by_table["b"] == ()
    for instant in range(90):
        assert within(instant, by_table["ab"]) == (within(instant, a) and within(instant, b))
        assert within(instant, by_table["deep"]) == (within(instant, by_table["ab"]) and within(instant, c))
        assert within(instant, by_table["w"]) == within(instant, a)
        window = range(instant // align * align, instant // align * align + align)
        assert within(instant, by_table["of_w"]) == all(within(moment, a) for moment in window)


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ({"w": [(1, 2)]}, "names the feed `w`, which does not exist. Define it under `feeds`, or name `v`"),
        ({"v": [(1, 2), (5, 5)]}, "a gap of the feed `v` does not end after it begins"),
        ({"v": [(-1, 5)]}, "of the feed `v` does not end after it begins. Give its beginning, 0 or later"),
    ],
)
def test_a_gap_that_cannot_be_is_refused(gaps, words):
    plan = make_plan(Builder().files("v", period=10).build())
    with pytest.raises(InputError) as error:
        simulate(plan, 100 * S, gaps=gaps)
    assert words in str(error.value)


# -- what a job makes of it ----------------------------------------------------------------------------


def back_from_an_outage(policy: str = "edf") -> Builder:
    """Files of 40 to 190 come at 200, and `d` is up to fifteen updates behind."""
    builder = Builder(tracks=2, policy=policy).files("v", period=10, phase=10)
    return builder.derived("d", ["v"], period=10, cost=5)


@pytest.mark.parametrize("policy", ["edf", "aus", "aus-slack"])
def test_a_derived_table_jumps_over_a_gap_and_loads_what_lies_behind(policy):
    plan = make_plan(back_from_an_outage(policy).build())
    gap = (55 * S, 175 * S)
    caught_up, reached = [], []
    for gaps in ({}, {"v": [gap]}):
        result = simulate(plan, 300 * S, outages={"v": [(35 * S, 200 * S)]}, gaps=gaps, keep_records=True)
        ends = [(end, freshness) for end, table, freshness in result.records.completions() if table == "d"]
        caught_up.append(next(end for end, freshness in ends if freshness >= 180 * S))
        reached = [freshness for _, freshness in ends]
    assert caught_up[1] < caught_up[0]
    jumps = [(before, after) for before, after in pairwise(reached) if after - before > 10 * S]
    assert jumps
    assert all(gap[0] <= before + 10 * S and after < gap[1] for before, after in jumps)


def test_the_log_says_how_far_a_job_may_go_only_where_that_is_further_than_it_loads():
    stream = io.StringIO()
    plan = make_plan(back_from_an_outage().build())
    gaps = {"v": [(55 * S, 175 * S)]}
    simulate(plan, 260 * S, outages={"v": [(35 * S, 200 * S)]}, gaps=gaps, journal_to=stream)
    header, *calls = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert header["gaps"] == {"v": [[55 * S, 175 * S]]}
    starts = {
        (start["start"], start["job"]): start for call in calls for start in call.get("instructions", ())
    }
    further = [start for start in starts.values() if "jump_to" in start]
    assert further
    assert all(start["jump_to"] > start["to"] for start in further)
    ends = [end for call in calls for end in call.get("events", ()) if "finished" in end]
    beyond = [end for end in ends if end["freshness"] > starts[end["finished"], end["job"]]["to"]]
    assert beyond
    assert all(end["freshness"] <= starts[end["finished"], end["job"]]["jump_to"] for end in beyond)
    assert replay(kernel_of(header), calls) == (len(calls), None)


def test_an_update_that_jumped_as_far_as_it_might_has_taken_all_there_was_at_its_start():
    source, table = assemble(make_plan(back_from_an_outage().build())).tasks
    source.freshness = 100 * S  # it was 90 when the job started
    job = Update(table, 1, 0, 10 * S, 0, 0, 20 * S, 30 * S, ())
    assert not table.intake.caught_up(30 * S, 10 * S, job)
    job.jump_to = 90 * S
    assert table.intake.caught_up(90 * S, 10 * S, job)
    assert not table.intake.caught_up(90 * S - 1, 10 * S, job)
    assert not table.intake.caught_up(30 * S, 10 * S, job)


def test_a_job_never_claims_to_be_fresher_than_it_may():
    kernel = assemble(make_plan(back_from_an_outage().build()))
    costs = {task.name: FixedCosts([S]) for task in kernel.tasks}
    driver = SimulatedDriver(kernel, {Update: SimulatedUpdates(costs)}, {"v": FixedFiles([(10 * S, 10 * S)])})
    driver.run(10 * S)
    job = kernel.tasks[0].job
    with pytest.raises(AssertionError, match="is not what it may load"):
        kernel.handle(11 * S, [UpdateFinished(job, job.loaded_to + 1)])


# -- what holds for every warehouse ----------------------------------------------------------------------


@sampled(150)
@given(seeds)
def test_simulated_staleness_never_exceeds_the_bound_with_gaps(seed):
    plan = make_plan(random_warehouse(seed))
    result = simulate(plan, 200 * S, seed, gaps=random_gaps(plan.warehouse, seed, 200 * S))
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


@sampled(100)
@given(seeds)
def test_the_same_with_windows_and_lateness(seed):
    plan = make_plan(live_warehouse(seed))
    result = simulate(plan, 200 * S, seed, gaps=random_gaps(plan.warehouse, seed, 200 * S))
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


@sampled(100)
@given(seeds)
def test_tables_without_an_outage_upstream_keep_their_bounds_with_gaps(seed):
    plan = make_plan(random_warehouse(seed, WarehouseShape(tables_max=40, tracks_max=3, pools_max=1)))
    outages = random_outages(plan.warehouse, seed, 100 * S)
    result = simulate(plan, 150 * S, seed, outages=outages, gaps=random_gaps(plan.warehouse, seed, 150 * S))
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


class Jumps:
    """Checks of every job that what it jumps over has no rows, and that it ends with a whole window."""

    def __init__(self, gaps) -> None:
        self._gaps = gaps
        self.count = 0

    def finished(self, now: int, job: Update, freshness: int) -> None:
        assert job.loaded_to <= freshness <= job.jump_to
        if freshness == job.loaded_to:
            return
        self.count += 1
        intake = job.task.intake
        assert isinstance(intake, DerivedIntake)
        assert freshness <= min(source.freshness for source in intake.sources)
        assert next_row(self._gaps[job.task.name], job.loaded_to) > freshness
        assert intake.align_us is None or (freshness + 1) % intake.align_us == 0


@sampled(80)
@given(seeds, st.sampled_from(POLICIES))
def test_a_job_jumps_only_over_time_without_rows_and_to_the_edge_of_a_window(seed, policy):
    warehouse = what_if(live_warehouse(seed), policy, {})
    outages = random_outages(warehouse, seed, 100 * S)
    by_table = gaps_of_sources(warehouse, checked_gaps(warehouse, random_gaps(warehouse, seed, 100 * S)))
    kernel = assemble(make_plan(warehouse))
    costs = {
        table.name: CostDraws(table.cost, seed, table.name)
        for table in warehouse.tables.values()
        if table.cost
    }
    files = {
        name: files_of(feed, seed, outages.get(name, ()))
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files"
    }
    SimulatedDriver(kernel, {Update: SimulatedUpdates(costs, Jumps(by_table), by_table)}, files).run(150 * S)
    validate(kernel)


def test_there_are_jumps_in_random_warehouses():
    jumps = 0
    for seed in range(30):
        warehouse = random_warehouse(seed)
        by_table = gaps_of_sources(warehouse, checked_gaps(warehouse, random_gaps(warehouse, seed, 200 * S)))
        witness = Jumps(by_table)
        costs = {
            table.name: CostDraws(table.cost, seed, table.name)
            for table in warehouse.tables.values()
            if table.cost
        }
        files = {
            name: files_of(feed, seed, ())
            for name, feed in warehouse.feeds.items()
            if feed.arrival == "files"
        }
        updates = SimulatedUpdates(costs, witness, by_table)
        SimulatedDriver(assemble(make_plan(warehouse)), {Update: updates}, files).run(200 * S)
        jumps += witness.count
    assert jumps > 100


@sampled(60)
@given(seeds, st.sampled_from(POLICIES))
@example(14, "aus")
def test_a_run_with_gaps_is_replayed_with_the_same_instructions(seed, policy):
    plan = make_plan(what_if(random_warehouse(seed), policy, {}))
    outages = random_outages(plan.warehouse, seed, 40 * S)
    stream = io.StringIO()
    simulate(
        plan, 60 * S, seed, outages=outages, gaps=random_gaps(plan.warehouse, seed, 60 * S), journal_to=stream
    )
    header, *calls = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert replay(kernel_of(header), calls) == (len(calls), None)


@sampled(60)
@given(seeds, st.sampled_from(["edf", "clustered-edf", "aus", "aus-slack", "prp"]))
def test_lag_over_time_agrees_with_what_was_observed_with_gaps(seed, policy):
    plan = make_plan(what_if(random_warehouse(seed), policy, {}))
    outages = random_outages(plan.warehouse, seed, 60 * S)
    gaps = random_gaps(plan.warehouse, seed, 90 * S)
    result = simulate(plan, 90 * S, seed, outages=outages, gaps=gaps, keep_records=True)
    for table in result.tables:
        _, *jumps, (_, lag_us) = lag_points(result, table.plan.name)
        assert table.lag_max_us == max(lag_us, *(lag for _, lag in jumps), 0)


@given(seeds, st.integers(1, 100 * S))
def test_random_gaps_are_what_they_say(seed, horizon):
    warehouse = random_warehouse(seed)
    gaps = random_gaps(warehouse, seed, horizon)
    assert gaps == random_gaps(warehouse, seed, horizon)
    assert gaps.keys() <= warehouse.feeds.keys()
    for times in gaps.values():
        assert all(0 <= start < horizon and start < end for start, end in times)
