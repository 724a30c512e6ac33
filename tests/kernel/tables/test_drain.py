"""A kernel that is told to drain loads all there is, under whatever policy, and then nothing more."""

import io
import json
from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import DAY, SECOND
from freshline.definitions.language.policies import policies_for
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import BACKED_OFF, IDLE, RUNNING, WAITING
from freshline.kernel.core.timers import NEVER
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.drain import DrainBegun, DrainingOrder, nothing_is_left, only_rest_is_left
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.intake import ContinuousIntake
from freshline.kernel.tables.membership import TableRemoved
from freshline.kernel.tables.task import tables_of
from freshline.planning.plan.make import make_plan, what_if, without_bounds
from freshline.simulation.simulated_run import files_of
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import random_outages, random_warehouse

END = 120 * SECOND
seeds = st.integers(0, 10**6)
policies = st.sampled_from(sorted(policies_for("tables")))


class Run:
    """Jobs take random times and may fail; files come until they are no more looked for."""

    def __init__(self, warehouse: Warehouse, seed: int, fails: float = 0.0, files_until: int = END) -> None:
        self.header = {"now": 0, "freshness": None, "warehouse": to_record(warehouse)}
        self.kernel: Kernel = kernel_of(self.header)
        self.started: list[tuple[int, str]] = []
        self._random = Random(f"drain:{seed}")
        self._fails = fails
        self._stream = io.StringIO()
        self._journal = Journal(self._stream, self.header)
        self._coming: list[tuple[int, int, object]] = []
        outages = random_outages(warehouse, seed, END)
        for name, feed in warehouse.feeds.items():
            if feed.arrival == "files":
                files = files_of(feed, seed, outages.get(name, ()))
                while (found := files.next()) is not None and found[0] <= files_until:
                    self._push(found[0], FileArrived(name, found[1]))

    def _push(self, at: int, what: object) -> None:
        heappush(self._coming, (at, len(self._coming) + self._random.randrange(1 << 40), what))

    @property
    def next_at(self) -> int:
        return min(self.kernel.wake_at, self._coming[0][0] if self._coming else NEVER)

    def step(self, *told: Event) -> None:
        """The next instant; or now, if there is something to tell."""
        now = self.kernel.now if told else self.next_at
        events = [*told]
        while self._coming and self._coming[0][0] <= now:
            what = heappop(self._coming)[2]
            events.append(what if isinstance(what, Event) else self._end(what, now))
        instructions = self.kernel.handle(now, events)
        self._journal.write(now, events, instructions)
        for instruction in instructions:
            self.started.append((now, instruction.job.task.name))
            worst_us = instruction.job.task.worst_case_us
            self._push(now + self._random.randint(1, max(1, worst_us)), instruction.job)
        validate(self.kernel)

    def _end(self, job, now: int) -> Event:
        # One that an idle track took early would be ready again before its release.
        if self._random.random() < self._fails and job.release <= job.start:
            return JobFailed(job, now + self._random.randint(1, SECOND))
        return UpdateFinished(job, job.loaded_to)

    def to(self, until: int) -> None:
        while self.next_at <= until:
            self.step()

    def to_the_end(self) -> None:
        for _ in range(100_000):
            if self.next_at == NEVER:
                return
            self.step()
        raise AssertionError("it goes on for ever")

    @property
    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()][1:]


def assert_all_is_loaded(kernel: Kernel, since: int) -> None:
    for task in tables_of(kernel):
        assert task.state == IDLE
        if isinstance(task.intake, ContinuousIntake):
            assert task.freshness >= since
        else:
            assert task.freshness == task.intake.trailing_edge(kernel.now)
            assert not task.intake.stale(task.freshness)


@sampled(300)
@given(seeds, policies, st.integers(1, END), st.sampled_from([0.0, 0.3]))
def test_whenever_it_is_told_all_is_loaded_and_then_nothing_more_and_the_journal_replays(
    seed, policy, at, fails
):
    run = Run(what_if(random_warehouse(seed), policy, {}), seed, fails)
    run.to(at)
    since = run.kernel.now
    run.step(DrainBegun())
    run.to_the_end()
    assert_all_is_loaded(run.kernel, since)
    assert nothing_is_left(run.kernel, lambda name: False)
    lines = run.lines
    again = kernel_of(run.header)
    assert replay(again, lines) == (len(lines), None)
    assert [task.freshness for task in tables_of(again)] == [task.freshness for task in tables_of(run.kernel)]


@sampled(100)
@given(seeds, policies)
def test_when_only_the_rest_is_left_each_table_loads_it_at_once_sources_first(seed, policy):
    """No table is updated twice: it waits for everything upstream of it."""
    run = Run(what_if(random_warehouse(seed), policy, {}), seed, files_until=END // 2)
    while run.next_at <= 2 * END and not (run.kernel.now >= END and only_rest_is_left(run.kernel)):
        run.step()
    if not only_rest_is_left(run.kernel):
        return  # a continuous feed never rests
    before = len(run.started)
    run.step(DrainBegun())
    run.to_the_end()
    assert_all_is_loaded(run.kernel, END)
    loaded = [name for _, name in run.started[before:]]
    assert len(loaded) == len(set(loaded))


@pytest.mark.parametrize("policy", sorted(policies_for("tables")))
def test_a_period_of_a_day_is_not_waited_for(policy):
    warehouse = (
        Builder(tracks=2, policy=policy)
        .files("raw", period=10, phase=10, cost=1)
        .derived("daily", ["raw"], period=DAY // SECOND, cost=1)
        .derived("over", ["daily"], period=2 * DAY // SECOND, cost=1)
        .build()
    )
    kernel = assemble(make_plan(warehouse), 100 * SECOND, dict.fromkeys(warehouse.tables, 50 * SECOND))
    for at_s in range(100, 160):
        told = [FileArrived("raw", DataFile(at_s * SECOND, str(at_s)))] if at_s % 10 == 0 else []
        kernel.handle(at_s * SECOND, [*told, *ends(kernel)])
    kernel.handle(160 * SECOND, ends(kernel))
    raw, daily, over = tables_of(kernel)
    kernel.handle(170 * SECOND, [*ends(kernel), DrainBegun()])
    assert all(isinstance(pool.order, DrainingOrder) for pool in kernel.pools)
    for at_s in range(171, 190):
        assert not (daily.job and over.job)
        kernel.handle(at_s * SECOND, ends(kernel))
        validate(kernel)
    assert raw.freshness == daily.freshness == over.freshness == 150 * SECOND
    assert nothing_is_left(kernel, lambda name: False)


def ends(kernel: Kernel) -> list[Event]:
    return [UpdateFinished(task.job, task.job.loaded_to) for task in tables_of(kernel) if task.job]


def chain() -> Warehouse:
    """In two pools: raw, then a and b in a row."""
    return (
        Builder(tracks=1)
        .pool("reports")
        .files("raw", period=10, phase=10, cost=1)
        .derived("a", ["raw"], period=DAY // SECOND, cost=1)
        .derived("b", ["a", "raw"], period=DAY // SECOND, cost=1, pool="reports")
        .build()
    )


def with_a_rest() -> Kernel:
    """a and b have loaded up to second 10, raw up to 20, and then one more day is to be waited for."""
    kernel = assemble(make_plan(chain()), 0, dict.fromkeys(["raw", "a", "b"]))
    for at_s in (10, 20):
        kernel.handle(at_s * SECOND, [FileArrived("raw", DataFile(at_s * SECOND, str(at_s)))])
        for second in range(1, 9):
            kernel.handle((at_s + second) * SECOND, ends(kernel))
    assert [task.freshness for task in tables_of(kernel)] == [20 * SECOND, 10 * SECOND, 10 * SECOND]
    assert [task.state for task in tables_of(kernel)] == [IDLE, WAITING, IDLE]
    return kernel


def test_what_failed_too_often_is_given_up_and_what_reads_it_loads_what_it_can():
    kernel = with_a_rest()
    _, a, b = tables_of(kernel)
    assert only_rest_is_left(kernel)
    assert not nothing_is_left(kernel, lambda name: True)
    kernel.handle(30 * SECOND, [DrainBegun()])
    assert (a.state, b.state) == (RUNNING, IDLE)
    kernel.handle(31 * SECOND, [JobFailed(a.job, 40 * SECOND)])
    assert a.state == BACKED_OFF
    assert not nothing_is_left(kernel, lambda name: False)
    assert nothing_is_left(kernel, lambda name: name == "a")
    assert kernel.wake_at == 40 * SECOND
    kernel.handle(40 * SECOND, [])
    kernel.handle(41 * SECOND, ends(kernel))
    kernel.handle(42 * SECOND, ends(kernel))
    assert (a.freshness, b.freshness) == (20 * SECOND, 20 * SECOND)


def test_a_table_of_another_pool_waits_for_work_upstream_and_goes_on_when_that_failed():
    kernel = with_a_rest()
    _, a, b = tables_of(kernel)
    b.freshness = 5 * SECOND  # it has something to load of its own
    kernel.handle(30 * SECOND, [DrainBegun()])
    assert (a.state, b.job) == (RUNNING, None)
    kernel.handle(31 * SECOND, [JobFailed(a.job, 90 * SECOND)])
    assert b.job is not None
    assert (b.job.loaded_from, b.job.loaded_to) == (5 * SECOND, 10 * SECOND)


def test_files_that_come_while_it_drains_are_loaded_too_all_at_once():
    kernel = with_a_rest()
    raw, a, b = tables_of(kernel)
    kernel.handle(30 * SECOND, [DrainBegun()])
    files = [FileArrived("raw", DataFile(at_s * SECOND, str(at_s))) for at_s in (30, 31, 32)]
    (start,) = kernel.handle(32 * SECOND, [*ends(kernel), *files])
    assert (start.job.task.name, len(start.job.files), start.job.updates) == ("raw", 3, 3)
    for at_s in range(33, 40):
        kernel.handle(at_s * SECOND, ends(kernel))
    assert raw.freshness == a.freshness == b.freshness == 32 * SECOND


def test_nobody_comes_or_goes_once_it_drains():
    kernel = with_a_rest()
    kernel.handle(30 * SECOND, [DrainBegun()])
    with pytest.raises(AssertionError, match="no table can leave"):
        kernel.handle(31 * SECOND, [TableRemoved("b")])


@pytest.mark.parametrize("fails", [False, True])
def test_a_table_that_is_leaving_when_it_is_told_leaves_after_its_job(fails):
    warehouse = Builder(tracks=2).files("stays", period=10, cost=1).files("goes", period=10, cost=1).build()
    kernel = assemble(make_plan(warehouse), 0, dict.fromkeys(warehouse.tables))
    kernel.handle(10 * SECOND, [FileArrived("goes", DataFile(at * SECOND, str(at))) for at in (9, 10)])
    job = kernel.task("goes").job
    assert job is not None
    kernel.handle(11 * SECOND, [TableRemoved("goes")])
    if fails:
        kernel.handle(12 * SECOND, [DrainBegun(), JobFailed(job, 13 * SECOND)])
        (start,) = kernel.handle(13 * SECOND, [])
        job = start.job
        assert len(job.files) == 2
    else:
        kernel.handle(12 * SECOND, [DrainBegun()])
    assert kernel.handle(14 * SECOND, [UpdateFinished(job, job.loaded_to)]) == []
    validate(kernel)
    assert [task.name for task in kernel.tasks] == ["stays"]


def test_what_is_learned_at_its_instant_is_told_to_the_policies_before():
    warehouse = Builder(policy="aus").files("a", period=10, phase=10, cost=1).build()
    kernel = assemble(without_bounds(make_plan(warehouse), frozenset({"a"})))
    told = learned(kernel, make_plan(warehouse))
    kernel.handle(5 * SECOND, [DrainBegun(), told])
    assert tables_of(kernel)[0].worst_case_us == SECOND
    assert isinstance(kernel.pools[0].order, DrainingOrder)
    validate(kernel)


def test_the_first_update_of_all_counts_as_one_however_much_it_loads():
    kernel = assemble(make_plan(chain()), 0, {"raw": 10 * DAY, "a": None, "b": None})
    kernel.handle(10 * DAY, [DrainBegun()])
    job = kernel.task("a").job
    assert job is not None
    assert (job.loaded_to, job.updates) == (10 * DAY, 1)
