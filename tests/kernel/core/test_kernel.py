"""The kernel as a state machine: whole lists of instructions for given events."""

import io
import json
from dataclasses import replace
from itertools import pairwise

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import policies_for
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import JobFailed, Start
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline.testing.script import FixedCosts, FixedFiles
from freshline_lab.runs.warehouses import random_warehouse


def started(instructions: list[Start]) -> list[tuple[str, int, int, int]]:
    return [
        (start.job.task.name, start.job.track, start.job.loaded_from, start.job.loaded_to)
        for start in instructions
    ]


def two_tables_on_one_feed() -> Kernel:
    warehouse = Builder(tracks=2).files("a", period=10).build()
    table = warehouse.tables["a"]
    warehouse = replace(
        warehouse,
        tables={"a": table, "b": replace(table, name="b")},
        topological_order=("a", "b"),
        released_by_files=frozenset({"a", "b"}),
    )
    return assemble(make_plan(warehouse))


def test_events_of_one_instant_are_taken_in_the_order_finished_arrived_timer_and_dispatched_once():
    warehouse = (
        Builder(tracks=1)
        .files("urgent", period=5, phase=10, cost=1)
        .continuous("slow", period=100, phase=7, cost=3)
        .continuous("periodic", period=20, phase=10, cost=1)
        .build()
    )
    kernel = assemble(make_plan(warehouse))
    (slow,) = kernel.handle(7 * SECOND, [])
    arrived = FileArrived("urgent", DataFile(10 * SECOND, "1"))
    # Given in the wrong order: the file is there, the timer is due and the track is free when it is decided.
    instructions = kernel.handle(10 * SECOND, [arrived, UpdateFinished(slow.job, slow.job.loaded_to)])
    assert started(instructions) == [("urgent", 0, 0, 10 * SECOND)]
    validate(kernel)


@pytest.mark.parametrize("policy", policies_for("tables"))
def test_a_kernel_whose_tracks_are_numbered_from_elsewhere_decides_the_same(policy):
    plan = make_plan(what_if(random_warehouse(3), policy, {}))
    costs = {name: [table.cost.startup_us + SECOND] for name, table in plan.warehouse.tables.items()}
    files = {
        name: [(at, at) for at in range(SECOND, 100 * SECOND, feed.period_us)]
        for name, feed in plan.warehouse.feeds.items()
        if feed.arrival == "files"
    }
    journals = []
    for first in (0, 7):
        kernel = assemble(plan, tracks_from=first)
        stream = io.StringIO()
        driver = SimulatedDriver(
            kernel,
            {Update: SimulatedUpdates({name: FixedCosts(cost) for name, cost in costs.items()})},
            {name: FixedFiles(arrivals) for name, arrivals in files.items()},
            journal=Journal(stream, {}),
        )
        driver.run(100 * SECOND)
        validate(kernel)
        calls = [json.loads(line) for line in stream.getvalue().splitlines()]
        for start in [start for call in calls for start in call.get("instructions", ())]:
            start["track"] -= first
            assert 0 <= start["track"] < sum(pool.tracks for pool in plan.pools)
        journals.append(calls)
    assert len(journals[0]) > 10
    assert journals[0] == journals[1]


def test_ties_go_by_definition_order():
    builder = Builder(tracks=2)
    for name in ("b", "c", "a"):
        builder.continuous(name, period=10)
    kernel = assemble(make_plan(builder.build()))
    assert started(kernel.handle(0, [])) == [("b", 0, 0, 0), ("c", 1, 0, 0)]
    validate(kernel)


def test_the_kernel_says_when_it_wants_to_be_called_again():
    kernel = assemble(make_plan(Builder().continuous("a", period=10, phase=4).build()))
    assert kernel.wake_at == 4 * SECOND
    kernel.handle(4 * SECOND, [])
    assert kernel.wake_at == 14 * SECOND


def test_a_kernel_that_waits_for_files_only_never_asks_to_be_woken():
    kernel = assemble(make_plan(Builder().files("a", period=10).build()))
    assert kernel.wake_at == NEVER


def test_a_driver_that_wakes_the_kernel_late_gets_releases_as_they_were_due():
    kernel = assemble(make_plan(Builder().continuous("a", period=10).build()))
    (start,) = kernel.handle(0, [])
    kernel.handle(1 * SECOND, [UpdateFinished(start.job, 0)])
    (start,) = kernel.handle(35 * SECOND, [])
    assert (start.job.release, start.job.deadline) == (10 * SECOND, 20 * SECOND)
    assert start.job.loaded_to == 10 * SECOND  # an update is at most a period long
    assert start.job.task.rule.unfinished_deadlines() == [20 * SECOND, 30 * SECOND, 40 * SECOND]
    validate(kernel)


def test_no_two_jobs_of_a_table_run_at_once():
    kernel = assemble(make_plan(Builder(tracks=4).continuous("a", period=10).build()))
    kernel.handle(0, [])
    assert kernel.handle(10 * SECOND, []) == []
    validate(kernel)


def test_pools_do_not_share_tracks():
    warehouse = (
        Builder(tracks=1)
        .pool("reports", tracks=1)
        .continuous("a", period=10)
        .continuous("b", period=20)
        .continuous("c", period=5, pool="reports")
        .build()
    )
    kernel = assemble(make_plan(warehouse))
    assert started(kernel.handle(0, [])) == [("a", 0, 0, 0), ("c", 1, 0, 0)]
    validate(kernel)


def test_two_tables_may_load_one_feed():
    kernel = two_tables_on_one_feed()
    instructions = kernel.handle(10 * SECOND, [FileArrived("a", DataFile(10 * SECOND, "1"))])
    assert started(instructions) == [("a", 0, 0, 10 * SECOND), ("b", 1, 0, 10 * SECOND)]
    assert [start.job.files for start in instructions] == [(DataFile(10 * SECOND, "1"),)] * 2


def test_time_does_not_go_back():
    kernel = Kernel()
    kernel.handle(10, [])
    with pytest.raises(AssertionError, match="time went back"):
        kernel.handle(9, [])


def test_a_job_cannot_finish_twice():
    kernel = assemble(make_plan(Builder().continuous("a", period=10).build()))
    (start,) = kernel.handle(0, [])
    kernel.handle(SECOND, [UpdateFinished(start.job, 0)])
    with pytest.raises(AssertionError, match="is not running"):
        kernel.handle(2 * SECOND, [UpdateFinished(start.job, 0)])


def test_a_failed_job_is_tried_again_after_its_back_off_with_its_files_as_the_tables_next_job():
    kernel = assemble(make_plan(Builder().files("a", period=10).build()))
    file = DataFile(10 * SECOND, "1")
    (start,) = kernel.handle(10 * SECOND, [FileArrived("a", file)])
    assert kernel.handle(11 * SECOND, [JobFailed(start.job, 14 * SECOND)]) == []
    validate(kernel)
    assert kernel.wake_at == 14 * SECOND
    # Another file makes no difference to the back-off.
    assert kernel.handle(12 * SECOND, [FileArrived("a", DataFile(12 * SECOND, "2"))]) == []
    (again,) = kernel.handle(14 * SECOND, [])
    assert again.job.files == (file,)
    # Released when the failed one was due; an idle track takes it at once.
    assert (again.job.release, again.job.deadline) == (start.job.deadline, 30 * SECOND)
    assert again.job.number == 2
    validate(kernel)


def test_a_table_that_failed_for_long_does_not_go_before_others():
    kernel = assemble(make_plan(Builder().files("a", period=10).files("b", period=30).build()))
    (start,) = kernel.handle(10 * SECOND, [FileArrived("a", DataFile(10 * SECOND, "1"))])
    kernel.handle(11 * SECOND, [JobFailed(start.job, 95 * SECOND)])
    files = [FileArrived("a", DataFile(at * SECOND, str(at))) for at in (20, 30, 40, 50, 60, 70)]
    kernel.handle(70 * SECOND, files)
    (busy,) = kernel.handle(94 * SECOND, [FileArrived("b", DataFile(90 * SECOND, "1"))])
    # Its job of before was due at 20; b's next one is due at 154.
    assert kernel.handle(95 * SECOND, [FileArrived("b", DataFile(95 * SECOND, "2"))]) == []
    a = kernel.tasks[0]
    assert (a.release, a.deadline) == (95 * SECOND, 105 * SECOND)
    (again,) = kernel.handle(96 * SECOND, [UpdateFinished(busy.job, busy.job.loaded_to)])
    kernel.handle(97 * SECOND, [UpdateFinished(again.job, again.job.loaded_to)])
    assert (a.release, a.deadline) == (105 * SECOND, 115 * SECOND)
    validate(kernel)


@pytest.mark.parametrize("policy", ["fifo", "rm", "prp"])
def test_where_nothing_is_proven_a_retry_waits_for_its_back_off_only(policy):
    kernel = assemble(make_plan(Builder(policy=policy).files("a", period=10).build()))
    (start,) = kernel.handle(10 * SECOND, [FileArrived("a", DataFile(10 * SECOND, "1"))])
    kernel.handle(11 * SECOND, [JobFailed(start.job, 14 * SECOND)])
    (again,) = kernel.handle(14 * SECOND, [])
    assert (again.job.release, again.job.deadline) == (14 * SECOND, 24 * SECOND)
    validate(kernel)


def test_without_early_starts_a_retry_waits_for_its_period():
    kernel = assemble(make_plan(Builder(policy="edf-strict").files("a", period=10).build()))
    (start,) = kernel.handle(10 * SECOND, [FileArrived("a", DataFile(10 * SECOND, "1"))])
    kernel.handle(11 * SECOND, [JobFailed(start.job, 14 * SECOND)])
    assert kernel.handle(14 * SECOND, []) == []
    (again,) = kernel.handle(20 * SECOND, [])
    assert (again.job.release, again.job.deadline) == (20 * SECOND, 30 * SECOND)
    validate(kernel)


def test_a_periodic_job_that_failed_keeps_its_release_and_deadline():
    kernel = assemble(make_plan(Builder().continuous("a", period=10).build()))
    (start,) = kernel.handle(0, [])
    kernel.handle(SECOND, [JobFailed(start.job, 3 * SECOND)])
    (again,) = kernel.handle(3 * SECOND, [])
    assert (again.job.release, again.job.deadline) == (0, 10 * SECOND)
    validate(kernel)


def test_a_failing_table_does_not_hold_up_the_others():
    kernel = assemble(make_plan(Builder().files("a", period=10).files("b", period=10).build()))
    (start,) = kernel.handle(10 * SECOND, [FileArrived("a", DataFile(10 * SECOND, "1"))])
    instructions = kernel.handle(
        11 * SECOND, [JobFailed(start.job, 60 * SECOND), FileArrived("b", DataFile(11 * SECOND, "1"))]
    )
    assert started(instructions) == [("b", 0, 0, 11 * SECOND)]


def test_a_restored_kernel_goes_on_where_the_tables_are():
    warehouse = Builder(tracks=2).files("a", period=10).derived("b", ["a"], period=20).build()
    now = 1_000_000 * SECOND
    kernel = assemble(make_plan(warehouse), now, {"a": now - 5 * SECOND, "b": now - 30 * SECOND})
    assert kernel.wake_at == now
    assert started(kernel.handle(now, [])) == [("b", 0, now - 30 * SECOND, now - 10 * SECOND)]


def test_a_table_that_was_never_loaded_takes_all_there_is_at_first():
    warehouse = Builder(tracks=2).files("a", period=10).derived("b", ["a"], period=20).build()
    now = 1_000_000 * SECOND
    kernel = assemble(make_plan(warehouse), now, {"a": now - 5 * SECOND, "b": None})
    (start,) = kernel.handle(now, [])
    assert (start.job.loaded_from, start.job.loaded_to) == (0, now - 5 * SECOND)
    kernel.handle(now + SECOND, [UpdateFinished(start.job, start.job.loaded_to)])
    validate(kernel)


def test_a_file_can_be_for_one_of_a_feeds_tables_only():
    kernel = two_tables_on_one_feed()
    file = DataFile(10 * SECOND, "1")
    instructions = kernel.handle(10 * SECOND, [FileArrived("a", file, frozenset({"b"}))])
    assert started(instructions) == [("b", 0, 0, 10 * SECOND)]


def test_an_aligned_table_is_loaded_up_to_a_windows_edge_minus_a_microsecond():
    warehouse = Builder(tracks=2).files("a", period=10).derived("b", ["a"], period=30).build()
    tables = {"a": warehouse.tables["a"], "b": replace(warehouse.tables["b"], align_us=20 * SECOND)}
    kernel = assemble(make_plan(replace(warehouse, tables=tables)))
    loaded = []
    for number in range(1, 9):
        now = number * 10 * SECOND
        (start,) = kernel.handle(now, [FileArrived("a", DataFile(now + 5, number))])
        for begun in kernel.handle(now + 5 * SECOND, [UpdateFinished(start.job, start.job.loaded_to)]):
            loaded.append((begun.job.loaded_from, begun.job.loaded_to))
            kernel.handle(now + 6 * SECOND, [UpdateFinished(begun.job, begun.job.loaded_to)])
        validate(kernel)
    # A window needs the file that reaches beyond it.
    edges = [0, 20 * SECOND - 1, 40 * SECOND - 1, 80 * SECOND - 1]
    assert loaded == list(pairwise(edges))
