"""Continuous queries in the kernel: releases, windows, budgets, quiet instants, who comes and goes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Pool
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.context import elsewhere
from freshline.kernel.assembly.query_tracks import add_query_tracks
from freshline.kernel.core.events import Event, JobFailed, JobPaused, Pause, Start
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.policies.lrm import budgets_us
from freshline.kernel.queries.events import IterationFinished, LoadMeasured
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.membership import QueryAdded, QueryRemoved
from freshline.kernel.queries.query_spec import QueryMeasure, QuerySpec
from freshline.kernel.queries.task import queries_of
from freshline.kernel.tables.drain import DrainBegun
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.remote_table import RemoteAdvanced
from freshline.planning.analysis.levels import is_schedulable
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from freshline_lab.runs.query_run import query_kernel

S = SECOND
MS = SECOND // 1000
HALF = Fraction(1, 2)
RM = Pool("p", 1, "rm", preemptive=True)
HPF = Pool("p", 1, "rm")
LRM = Pool("p", 1, "lrm")
PAPER = Pool("p", 1, "lrm-paper")


def measure(cost_ms: int, fixed_ms: int = 0) -> QueryMeasure:
    return QueryMeasure(1000, cost_ms * MS, fixed_ms * MS, HALF)


def asked(name: str, stride_s: int, cost_ms: int, **more: object) -> QuerySpec:
    known = {"window_us": stride_s * S, "deadline_us": stride_s * S, "part_us": 0, **more}
    return QuerySpec(name, "p/1", stride_us=stride_s * S, measure=measure(cost_ms), **known)


def one_job(instructions: list) -> Iteration:
    (start,) = instructions
    assert isinstance(start, Start)
    return start.job


def names(kernel: Kernel) -> list[str]:
    return [task.name for task in queries_of(kernel)]


def step(kernel: Kernel, at: int, *events: Event) -> list:
    said = kernel.handle(at, list(events))
    validate(kernel)
    return said


def test_iterations_are_released_at_multiples_of_the_stride_whenever_the_kernel_begins():
    kernel = Kernel()
    add_query_tracks(kernel, RM, [asked("a", 2, 100)], 0)
    kernel.begin(5 * S)
    assert kernel.wake_at == 6 * S
    job = one_job(step(kernel, 6 * S))
    assert (job.release, job.deadline, job.window_from, job.window_to) == (6 * S, 8 * S, 4 * S, 6 * S)
    assert (job.budget_us, job.keep) == (None, 1)
    step(kernel, 7 * S, IterationFinished(job))
    assert kernel.wake_at == 8 * S


def test_a_late_iteration_runs_on_and_the_next_ones_wait_each_with_its_window():
    kernel = query_kernel(RM, [asked("a", 2, 100)])
    first = one_job(step(kernel, 0))
    assert step(kernel, 2 * S) == []
    assert step(kernel, 4 * S) == []
    assert kernel.task("a").rule.unfinished_deadlines() == [2 * S, 4 * S, 6 * S]
    second = one_job(step(kernel, 5 * S, IterationFinished(first)))
    assert (second.release, second.window_to, second.deadline) == (2 * S, 2 * S, 4 * S)
    third = one_job(step(kernel, 5 * S, IterationFinished(second)))
    assert (third.release, third.number) == (4 * S, 3)


def test_a_window_ends_where_the_least_fresh_table_does_at_the_release():
    kernel = assemble(make_plan(Builder(tracks=1).files("t", period=10).files("u", period=10).build()))
    add_query_tracks(kernel, RM, [asked("a", 2, 100, tables=("t", "u"))], 1)
    kernel.task("a").rule.begin(0)
    jobs = [start.job for start in step(kernel, 0)]
    assert [job.window_to for job in jobs] == [0]
    (load,) = step(kernel, S, FileArrived("t", DataFile(S, "1")))
    (other, again) = step(
        kernel,
        2 * S,
        UpdateFinished(load.job, S),
        IterationFinished(jobs[0]),
        FileArrived("u", DataFile(S // 2, "1")),
    )
    assert again.job.window_to == 0  # nothing of u is loaded yet
    step(kernel, 3 * S, UpdateFinished(other.job, S // 2), IterationFinished(again.job))
    assert one_job(step(kernel, 4 * S)).window_to == S // 2


def test_an_iteration_that_fails_is_over_and_the_next_comes_at_its_time():
    kernel = query_kernel(RM, [asked("a", 2, 100)])
    job = one_job(step(kernel, 0))
    assert step(kernel, S, JobFailed(job, S + 1)) == []
    assert step(kernel, S + 1) == []
    assert one_job(step(kernel, 2 * S)).release == 2 * S


def test_the_shorter_deadline_goes_first_and_ties_go_by_definition():
    short = asked("short", 9, 100, deadline_us=3 * S)
    kernel = query_kernel(RM, [asked("a", 4, 100), asked("b", 4, 100), short])
    order = []
    said = step(kernel, 0)
    while said:
        job = one_job(said)
        order.append(job.task.name)
        said = step(kernel, len(order), IterationFinished(job))
    assert order == ["short", "a", "b"]


@pytest.mark.parametrize(("pool", "asks"), [(RM, True), (HPF, False), (LRM, True), (PAPER, True)])
def test_only_where_the_pool_preempts_is_an_iteration_put_aside(pool, asks):
    kernel = query_kernel(pool, [asked("long", 3, 100), asked("short", 2, 100)])
    short = one_job(step(kernel, 0))
    long = one_job(step(kernel, S, IterationFinished(short)))
    said = step(kernel, 2 * S)
    assert [(type(each), each.job) for each in said] == ([(Pause, long)] if asks else [])
    if asks:
        again = one_job(step(kernel, 2 * S, JobPaused(long)))
        assert one_job(step(kernel, 2 * S + 1, IterationFinished(again))) is long


def test_a_lower_budget_counts_from_the_next_release_and_a_higher_one_from_the_next_quiet_instant():
    kernel = query_kernel(LRM, [asked("a", 2, 500), asked("b", 6, 1500)])
    a = one_job(step(kernel, 0))
    first = {"a": a.budget_us, "b": kernel.task("b").waiting[0].allowance.budget_us}
    assert first == budgets_us([task.load for task in queries_of(kernel)])
    # Now a costs more and b next to nothing: a is to have more, and b less.
    b = one_job(step(kernel, S, IterationFinished(a), LoadMeasured({"a": measure(1500), "b": measure(1)})))
    assert b.budget_us == first["b"]  # it was released before
    step(kernel, 2 * S)
    a = one_job(step(kernel, 2 * S, JobPaused(b)))
    assert a.budget_us == first["a"]  # b is unfinished
    assert one_job(step(kernel, 3 * S, IterationFinished(a))) is b
    # At 4 s b ends and a is released: the end comes first, and makes the instant quiet.
    a = one_job(step(kernel, 4 * S, IterationFinished(b)))
    assert a.budget_us > first["a"]
    step(kernel, 5 * S, IterationFinished(a))
    one_job(step(kernel, 6 * S))
    assert kernel.task("b").waiting[0].allowance.budget_us < first["b"]


def test_what_is_measured_at_the_instant_of_an_end_and_a_release_comes_between_them():
    kernel = query_kernel(LRM, [asked("a", 2, 500)])
    a = one_job(step(kernel, 0))
    b = asked("b", 2, 1000)
    again = one_job(
        step(kernel, 2 * S, LoadMeasured({"a": measure(10)}), QueryAdded(b), IterationFinished(a))
    )
    assert names(kernel) == ["a", "b"]
    loads = [asked("a", 2, 10).load(measure(10)), b.load(b.measure)]
    assert again.budget_us == budgets_us(loads)["a"]


def test_where_least_costs_no_longer_fit_budgets_stay_as_they_are():
    least = {"keep_least": HALF}
    kernel = query_kernel(LRM, [asked("a", 2, 500, **least), asked("b", 4, 500, **least)])
    a = one_job(step(kernel, 0))
    before = (a.budget_us, kernel.task("b").waiting[0].allowance.budget_us)
    b = one_job(step(kernel, S, IterationFinished(a)))
    step(kernel, S + 1, IterationFinished(b), LoadMeasured({"a": measure(10_000), "b": measure(10_000)}))
    again = one_job(step(kernel, 2 * S))
    step(kernel, 3 * S, IterationFinished(again))
    third = one_job(step(kernel, 4 * S))
    assert (third.budget_us, kernel.task("b").waiting[0].allowance.budget_us) == before
    assert again.budget_us == before[0]


def test_budgets_pass_the_exact_test_even_where_least_costs_do_not_fit_in_the_beginning():
    queries = [asked("a", 2, 5000, keep_least=Fraction(1)), asked("b", 3, 5000, keep_least=Fraction(1))]
    kernel = query_kernel(LRM, queries)
    a = one_job(step(kernel, 0))
    budgets = [a.budget_us, kernel.task("b").waiting[0].allowance.budget_us]
    assert is_schedulable([task.load for task in queries_of(kernel)], budgets)
    assert min(budgets) > S // 2


def test_a_query_that_does_not_fit_waits_until_it_does():
    kernel = query_kernel(LRM, [asked("a", 2, 1900, keep_least=Fraction(1))])
    step(kernel, 0)
    new = asked("b", 2, 1000, keep_least=HALF)
    step(kernel, S, QueryAdded(new))
    step(kernel, S + 1, IterationFinished(kernel.task("a").job))
    assert names(kernel) == ["a"]
    step(kernel, S + 2, LoadMeasured({"a": measure(1000)}))
    assert names(kernel) == ["a", "b"]


def test_a_query_joins_at_a_quiet_instant_and_goes_after_its_iteration():
    kernel = query_kernel(LRM, [asked("a", 2, 500), asked("b", 4, 500)])
    a = one_job(step(kernel, 0))
    step(kernel, 1, QueryAdded(asked("c", 1, 100)))
    b = one_job(step(kernel, S, IterationFinished(a)))
    assert names(kernel) == ["a", "b"]
    step(kernel, S + 1, QueryRemoved("b"))
    assert names(kernel) == ["a", "b"]
    step(kernel, S + 2, IterationFinished(b))
    assert names(kernel) == ["a", "c"]
    assert kernel.wake_at == 2 * S


def test_a_changed_query_is_a_removal_and_a_new_one():
    for pool in (RM, LRM, PAPER):
        kernel = query_kernel(pool, [asked("a", 2, 500)])
        a = one_job(step(kernel, 0))
        step(kernel, 1, QueryRemoved("a"), QueryAdded(asked("a", 3, 500)))
        step(kernel, 2, IterationFinished(a))
        assert kernel.wake_at == 3 * S
        assert one_job(step(kernel, 3 * S)).window_from == 0


def test_what_was_to_come_may_be_taken_back():
    kernel = query_kernel(LRM, [asked("a", 2, 500)])
    a = one_job(step(kernel, 0))
    step(kernel, 1, QueryAdded(asked("b", 2, 500)))
    step(kernel, 2, QueryRemoved("b"), QueryRemoved("a"), QueryAdded(asked("a", 4, 500)))
    step(kernel, 3, QueryRemoved("a"))
    step(kernel, 4, IterationFinished(a))
    assert names(kernel) == []
    step(kernel, 5, QueryAdded(asked("a", 4, 500)))
    assert one_job(step(kernel, 4 * S)).task.name == "a"


def test_one_that_waits_to_begin_goes_at_once_and_may_leave_the_pool_quiet():
    kernel = query_kernel(LRM, [asked("a", 2, 500), asked("b", 4, 500)])
    a = one_job(step(kernel, 0))
    step(kernel, 1, QueryAdded(asked("c", 8, 100)))
    step(kernel, 2, QueryRemoved("b"))
    assert names(kernel) == ["a"]
    step(kernel, 3, IterationFinished(a))
    assert names(kernel) == ["a", "c"]


def test_a_schedule_of_the_paper_holds_until_the_next_whatever_the_windows_hold():
    kernel = query_kernel(PAPER, [asked("a", 2, 1500), asked("b", 2, 1500)])
    a = one_job(step(kernel, 0, LoadMeasured({"a": measure(1500), "b": measure(1500)})))
    b = one_job(step(kernel, S, IterationFinished(a)))
    assert a.budget_us is None
    assert a.keep == b.keep == Fraction(2, 3)
    step(kernel, S + 1, IterationFinished(b), LoadMeasured({"a": measure(100), "b": measure(1500)}))
    assert one_job(step(kernel, 2 * S)).keep == 1


def test_draining_tables_leaves_queries_as_they_are():
    kernel = assemble(make_plan(Builder(tracks=1).files("t", period=10).build()))
    add_query_tracks(kernel, LRM, [asked("a", 2, 100)], 1)
    kernel.task("a").rule.begin(0)
    job = one_job(step(kernel, 0))
    step(kernel, S, DrainBegun(), FileArrived("t", DataFile(S, "1")), IterationFinished(job))
    assert one_job(step(kernel, 2 * S)).budget_us is not None


def test_a_part_that_is_longer_than_a_deadline_makes_others_late_and_stops_nobody():
    kernel = query_kernel(LRM, [asked("a", 2, 500), asked("b", 8, 4_000, part_us=3 * S)])
    job = one_job(step(kernel, 0))
    assert job.task.name == "a"
    assert job.budget_us >= 1


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.integers(1, 200))
def test_an_iteration_says_which_table_ends_its_window_if_another_is_more_than_a_window_further(
    reached_s: list[int], window_s: int
) -> None:
    kernel = Kernel()
    tables = tuple(f"t{number}" for number in range(len(reached_s)))
    for table in tables:
        elsewhere(kernel, table)
    add_query_tracks(kernel, RM, [asked("q", 400, 1, window_us=window_s * S, tables=tables)], 0)
    kernel.begin(1)
    moved = [RemoteAdvanced(table, at * S) for table, at in zip(tables, reached_s, strict=True)]
    assert step(kernel, 350 * S, *moved) == []
    job = one_job(step(kernel, 400 * S))
    least_s, apart_s = min(reached_s), max(reached_s) - min(reached_s)
    assert job.window_to == least_s * S
    if apart_s <= window_s:
        assert job.held_back is None
    else:
        assert job.held_back == (tables[reached_s.index(least_s)], least_s * S, apart_s * S)
