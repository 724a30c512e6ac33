"""Jobs of several files: how many they take, when, and what they leave to others (docs/batches.md)."""

import io
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.events import JobFailed, Start
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.batches import BatchCost, fitting
from freshline.kernel.tables.events import BatchCostsLearned, DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.task import TableTask
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.simulate import simulate
from freshline.testing.builder import Builder
from freshline_lab.campaigns.recovery.recoveries import run_through
from freshline_lab.runs.warehouses import (
    WarehouseShape,
    random_crashes,
    random_failures,
    random_outages,
    random_warehouse,
    with_random_blocking,
)

seeds = st.integers(0, 2**32)


def batches(warehouse: Warehouse, end_s: int, outages: dict[str, list[tuple[int, int]]]) -> dict[str, int]:
    """By table: how many files a job took at most. No bound is exceeded, and the journal replays."""
    plan = make_plan(warehouse)
    log = io.StringIO()
    times = {name: [(a * SECOND, b * SECOND) for a, b in spans] for name, spans in outages.items()}
    result = simulate(plan, end_s * SECOND, 0, outages=times, journal_to=log)
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]
    header, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)
    most: dict[str, int] = {}
    for call in calls:
        for job in call.get("instructions", ()):
            most[job["start"]] = max(most.get(job["start"], 0), len(job.get("files", ())))
    return most


def by_length(builder: Builder, name: str, *, period: int, cost: int) -> None:
    """A table whose updates cost nothing to start: a batch of two costs twice as much as one."""
    builder.files(name, period=period, cost=0, rate=Fraction(cost, period))


def four_tables(blocking: int) -> Warehouse:
    builder = Builder(tracks=2, blocking=blocking)
    by_length(builder, "long", period=1000, cost=10)
    by_length(builder, "often", period=3, cost=1)
    by_length(builder, "one", period=100, cost=1)
    by_length(builder, "two", period=100, cost=1)
    return builder.build()


@pytest.mark.parametrize(("blocking", "files"), [(0, 1), (4, 4), (10, 10)])
def test_on_two_tracks_batches_are_as_long_as_every_bound_counts(blocking: int, files: int) -> None:
    warehouse = four_tables(blocking)
    outages = {"one": [(50, 4_000)], "two": [(50, 4_000)]}
    most = batches(warehouse, 6_000, outages)
    assert (most["one"], most["two"], most["often"]) == (files, files, 1)


@pytest.mark.parametrize(("blocking", "files"), [(0, 2), (1, 2), (3, 3)])
def test_on_one_track_batches_take_what_the_exact_test_leaves_or_what_is_declared(
    blocking: int, files: int
) -> None:
    builder = Builder(blocking=blocking)
    for name, period, cost in (("first", 6, 4), ("second", 7, 1), ("third", 8, 1)):
        by_length(builder, name, period=period, cost=cost)
    # All the others wait less than they may: the track is full, and seldom free.
    assert batches(builder.build(), 4_000, {"third": [(50, 400)]})["third"] == files


def test_with_a_track_for_each_table_a_batch_takes_its_period() -> None:
    builder = Builder(tracks=2)
    by_length(builder, "a", period=100, cost=10)
    by_length(builder, "b", period=7, cost=6)
    assert batches(builder.build(), 6_000, {"a": [(50, 4_000)]})["a"] == 10


@pytest.mark.parametrize("policy", ["edf-strict", "fifo", "rm", "aus"])
def test_where_no_job_starts_early_each_takes_one_file(policy: PolicyName) -> None:
    builder = Builder(tracks=2, policy=policy).files("a", period=10, cost=1).files("b", period=10, cost=1)
    assert batches(builder.build(), 1_000, {"a": [(50, 400)]})["a"] == 1


def test_clusters_have_limits_of_their_own() -> None:
    builder = Builder(tracks=2, policy="clustered-edf")
    for name in ("a", "b"):
        by_length(builder, name, period=100, cost=1)
    for name in ("c", "d"):
        by_length(builder, name, period=1000, cost=300)
    plan = make_plan(builder.build())
    assert plan.pools[0].clusters is not None
    kernel = assemble(plan)
    planned = [cluster.batch_limit_us for cluster in plan.pools[0].clusters]
    assert [pool.order.batch_limit_us for pool in kernel.pools] == planned
    assert len(set(planned)) == 2


# -- how many -------------------------------------------------------------------------------------------


def one_table(startup: int = 1, rate: Fraction = Fraction(0), period: int = 10) -> Kernel:
    builder = Builder().files("v", period=period, cost=startup, rate=rate)
    return assemble(make_plan(builder.build()))


def arrive(kernel: Kernel, count: int, rows: int = 0) -> list[Update]:
    """That many files come now; the jobs that start."""
    files = [DataFile(number, number, rows) for number in range(1, count + 1)]
    return jobs(kernel.handle(kernel.now, [FileArrived("v", file) for file in files]))


def jobs(instructions: list[Start]) -> list[Update]:
    started = [start.job for start in instructions]
    assert all(isinstance(job, Update) for job in started)
    return started  # type: ignore[return-value]


def end(kernel: Kernel, job: Update, after_us: int) -> Update:
    """The job ends well so long after its start; the one that starts then."""
    (then,) = jobs(kernel.handle(job.start + after_us, [UpdateFinished(job, job.loaded_to)]))
    return then


def test_batches_grow_from_what_went_well() -> None:
    kernel = one_table()
    (job,) = arrive(kernel, 100)
    taken = []
    for _ in range(5):
        taken.append(len(job.files))
        job = end(kernel, job, SECOND)
    assert taken == [1, 2, 4, 8, 16]


def test_a_batch_that_took_too_long_is_followed_by_a_smaller_one() -> None:
    kernel = one_table()
    (job,) = arrive(kernel, 100)
    for _ in range(3):
        job = end(kernel, job, SECOND)
    assert len(job.files) == 8
    assert job.worst_case_us == 10 * SECOND  # as bounds count it
    released = end(kernel, job, 40 * SECOND)  # for this long its next job has waited: it takes one
    assert len(released.files) == 1
    released = end(kernel, released, SECOND)
    while released.release <= released.start:
        released = end(kernel, released, SECOND)
    assert len(released.files) == 2


def test_after_a_failure_the_next_attempt_takes_one_file() -> None:
    kernel = one_table()
    (job,) = arrive(kernel, 100)
    for _ in range(3):
        job = end(kernel, job, SECOND)
    assert len(job.files) == 8
    now = job.start + SECOND
    assert not kernel.handle(now, [JobFailed(job, now + SECOND)])
    (again,) = jobs(kernel.handle(now + SECOND, []))
    assert again.files == job.files[:1]
    assert len(end(kernel, again, SECOND).files) == 2


def test_files_cost_what_they_cost_alone_without_the_start_up_until_more_is_known() -> None:
    kernel = one_table(startup=1, rate=Fraction(1, 10))  # 2 s alone, 1 s with others
    (job,) = arrive(kernel, 100)
    for _ in range(4):
        job = end(kernel, job, SECOND)
    assert len(job.files) == 9
    known = BatchCostsLearned({"v": BatchCost(SECOND, 1_000_000_000, 500_000_000)})
    kernel.handle(kernel.now, [known])
    assert len(end(kernel, job, SECOND).files) == 9  # of no rows: nine of them in nine seconds


def test_rows_count_where_it_is_known_what_they_cost() -> None:
    kernel = one_table()
    (job,) = arrive(kernel, 100, rows=4)
    kernel.handle(kernel.now, [BatchCostsLearned({"v": BatchCost(SECOND, 1_000_000_000, 750_000_000)})])
    for _ in range(4):
        job = end(kernel, job, SECOND)
    assert len(job.files) == 3  # three seconds each


def test_what_decides_is_in_the_events_that_a_journal_has() -> None:
    kernel = one_table()
    known = BatchCostsLearned({"v": BatchCost(1, 2, 3)})
    assert BatchCostsLearned.from_record(json.loads(json.dumps(known.record())), kernel).costs == known.costs
    came = FileArrived("v", DataFile(1, "f", 7))
    assert FileArrived.from_record(json.loads(json.dumps(came.record())), kernel).file == came.file


# -- released jobs ----------------------------------------------------------------------------------------


def backlog_taken(policy: PolicyName, known: BatchCost, startup: int = 1) -> list[int]:
    """How many files the first jobs of a backlog take, each of which ends after its files' cost."""
    builder = Builder(policy=policy)
    for name in ("v", "other"):  # more tables than tracks
        builder.files(name, period=10, cost=startup, rate=Fraction(1, 10))
    kernel = assemble(make_plan(builder.build()))
    (job,) = arrive(kernel, 200)
    kernel.handle(kernel.now, [BatchCostsLearned({"v": known})])
    taken = []
    for _ in range(6):
        taken.append(len(job.files))
        ended = jobs(kernel.handle(job.start + SECOND, [UpdateFinished(job, job.loaded_to)]))
        while not ended:
            ended = jobs(kernel.handle(kernel.wake_at, []))
        (job,) = ended
    return taken


@pytest.mark.parametrize(
    ("policy", "most"), [("edf-strict", 8), ("aus", 8), ("aus-slack", 8), ("fifo", 32), ("rm", 32)]
)
def test_a_released_job_takes_what_costs_no_more_than_bounds_count_it_with(
    policy: PolicyName, most: int
) -> None:
    # A job costs 2 s at worst: eight files of 0.25 s. Where nothing is proven the period of 10 s counts.
    known = BatchCost(1, 249_000_000, 0)
    assert max(backlog_taken(policy, known)) == most


@pytest.mark.parametrize(("alone_ms", "most"), [(200, 10), (500, 8), (1_700, 2), (1_950, 1), (2_100, 1)])
def test_of_what_files_take_alone_the_first_batches_are_made(alone_ms: int, most: int) -> None:
    # 2 s at worst, of which 1.8 s are the start-up: each file more costs 0.2 s at most.
    builder = Builder(policy="edf-strict")
    for name in ("v", "other"):
        builder.files(name, period=10, cost=Fraction(9, 5), rate=Fraction(1, 50))
    kernel = assemble(make_plan(builder.build()))
    task = kernel.task("v")
    assert isinstance(task, TableTask)
    task.intake.pending = [DataFile(number, number) for number in range(1, 100)]  # type: ignore[attr-defined]
    task.batch_max, task.batch_cost = 50, BatchCost(0, alone_ms * 1_000_000, 0)
    assert fitting(task, 2 * SECOND) == most


@pytest.mark.parametrize("policy", ["edf-strict", "aus", "fifo"])
def test_a_released_job_takes_one_file_as_long_as_nothing_is_known_of_several(policy: PolicyName) -> None:
    builder = Builder(policy=policy).files("v", period=10, cost=1, rate=Fraction(1, 10))
    kernel = assemble(make_plan(builder.build()))
    (job,) = arrive(kernel, 50)
    for _ in range(4):
        assert len(job.files) == 1
        kernel.handle(job.start + SECOND, [UpdateFinished(job, job.loaded_to)])
        (job,) = jobs(kernel.handle(kernel.wake_at, []))


def test_without_batches_released_jobs_take_one_file_too() -> None:
    builder = Builder(policy="fifo").files("v", period=10, cost=1, rate=Fraction(1, 10))
    kernel = assemble(make_plan(builder.build()), batches=False)
    (job,) = arrive(kernel, 50)
    kernel.handle(kernel.now, [BatchCostsLearned({"v": BatchCost(1, 1, 0)})])
    kernel.handle(job.start + SECOND, [UpdateFinished(job, job.loaded_to)])
    (job,) = jobs(kernel.handle(kernel.wake_at, []))
    assert len(job.files) == 1


# -- bounds, promises, order ------------------------------------------------------------------------------

EDF = WarehouseShape(tables_max=14, tracks_max=4, policies=("edf", "clustered-edf"), pools_max=2)


@sampled(80)
@given(seeds, st.sampled_from(["edf", "clustered-edf", "aus", "aus-slack"]))
def test_with_batches_no_bound_is_exceeded_and_every_file_is_loaded_once(
    seed: int, policy: PolicyName
) -> None:
    warehouse = with_random_blocking(random_warehouse(seed, EDF), seed)
    length_us = 200 * SECOND
    conditions = checked(
        warehouse,
        2 * length_us,
        outages=random_outages(warehouse, seed, length_us),
        failures=random_failures(warehouse, seed) if seed % 3 == 0 else {},
        crashes=random_crashes(seed, length_us) if seed % 4 == 0 else (),
    )
    assert not run_through(warehouse, policy, conditions, 2 * length_us, seed).wrong


@sampled(60)
@given(seeds, st.sampled_from(["edf", "edf-strict", "clustered-edf", "aus", "aus-slack"]))
def test_with_released_jobs_of_several_files_nothing_that_was_proven_or_promised_is_broken(
    seed: int, policy: PolicyName
) -> None:
    warehouse = (
        with_random_blocking(random_warehouse(seed, EDF), seed) if seed % 2 else random_warehouse(seed)
    )
    length_us = 200 * SECOND
    conditions = checked(
        warehouse,
        2 * length_us,
        outages=random_outages(warehouse, seed, length_us),
        failures=random_failures(warehouse, seed) if seed % 3 == 0 else {},
        crashes=random_crashes(seed, length_us) if seed % 4 == 0 else (),
    )
    log = io.StringIO()
    assert not run_through(warehouse, policy, conditions, 2 * length_us, seed, log, known_batches=True).wrong
    header, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)
