"""Recovery mode: paper 001's reweighting rules (i) to (vii), Rule RN, promises, derived tables.

Most tests have a table `v` of period 10 and cost 2 beside a table `w` that has half of the only track: v's
recovery period is 2 / (1 − 0.5) = 4. What jobs really cost is up to each test; w runs where a track is to
be busy, and otherwise only after the end. Its long job makes v's response bound 10 + 2 + 500 − 2 = 510.
"""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import JobFailed
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import BACKED_OFF, Task
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.terms import LEAVING, NORMAL, RECOVERING, Recovery
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from freshline.testing.script import Schedule, play

NEVER = 100_000
Files = list[tuple[int, int]]  # arrivals and timestamps, in seconds


def kernel_of_v(late_after: int, busy_from: int = NEVER) -> Kernel:
    warehouse = (
        Builder(policy="aus")
        .files("v", period=10, phase=10, cost=2, late_after=late_after)
        .continuous("w", period=1000, cost=500, phase=busy_from)
        .build()
    )
    return assemble(make_plan(warehouse))


def run(kernel: Kernel, end: float, files: Files, v_costs: list[float], w_cost: float = 1) -> Schedule:
    return play(
        kernel,
        round(end * SECOND),
        {"v": [round(cost * SECOND) for cost in v_costs], "w": [round(w_cost * SECOND)]},
        {"v": [(arrival * SECOND, timestamp * SECOND) for arrival, timestamp in files]},
    )


def rule_of(task: Task) -> AdaptiveRelease:
    assert isinstance(task.rule, AdaptiveRelease)
    return task.rule


def recovery_of(kernel: Kernel) -> Recovery:
    recovery = rule_of(kernel.tasks[0]).recovery
    assert recovery is not None
    return recovery


def releases(schedule: Schedule, table: str = "v") -> list[tuple[float, ...]]:
    """Release, deadline and start of each job."""
    return [tuple(instant / SECOND for instant in job[2:5]) for job in schedule.of(table)]


def theorem_4(
    first_release: float, outage: float, response: int = 510, p_r: float = 4, jitter: int = 0
) -> int:
    """When the recovery of a table of period 10 must be over."""
    p, recovery_period = 10, Fraction(str(p_r))
    x = (response * p + (Fraction(str(outage)) + jitter + p) * recovery_period) / (p - recovery_period)
    return ceil((Fraction(str(first_release)) + x) * SECOND)


def test_v_has_the_period_and_the_response_bound_that_the_tests_count_with():
    terms = rule_of(kernel_of_v(late_after=15).tasks[0]).terms
    assert (terms.period_us, terms.response_us) == (4 * SECOND, 510 * SECOND)


# -- the reweighting rules ------------------------------------------------------------------------------


def test_rule_i_the_first_job_is_released_at_once():
    kernel = kernel_of_v(late_after=15)
    schedule = run(kernel, 70, [(50, 20), (50, 30), (50, 40), (50, 50)], [2])
    assert releases(schedule) == [(50, 54, 50), (54, 58, 54), (58, 62, 58), (62, 66, 62)]
    assert recovery_of(kernel) == Recovery(50 * SECOND, theorem_4(50, 50), 64 * SECOND)


def test_rule_ii_after_the_last_deadline_the_next_job_is_released_at_once():
    kernel = kernel_of_v(late_after=15)
    schedule = run(kernel, 60, [(10, 10), (47, 30), (47, 47)], [2])
    assert releases(schedule) == [(10, 20, 10), (47, 51, 47), (51, 55, 51)]
    assert recovery_of(kernel).due == theorem_4(47, 37)


def test_rule_ii_a_job_that_is_overdue_keeps_its_deadline_and_the_next_counts_from_the_change():
    kernel = kernel_of_v(late_after=25, busy_from=9)
    schedule = run(kernel, 60, [(10, 10), (20, 20), (30, 30)], [2], w_cost=27)
    assert releases(schedule) == [(10, 20, 36), (30, 34, 38), (34, 38, 40)]
    assert recovery_of(kernel) == Recovery(30 * SECOND, theorem_4(30, 30), 42 * SECOND)


def test_rule_iii_a_released_job_that_is_due_soon_keeps_its_deadline():
    kernel = kernel_of_v(late_after=12, busy_from=9)
    schedule = run(kernel, 40, [(10, 3), (18, 8), (18, 13), (18, 18)], [2], w_cost=16)
    assert releases(schedule) == [(10, 20, 25), (20, 24, 27), (24, 28, 29), (28, 32, 31)]
    # Counted from 20, two units ahead; there were four files.
    assert recovery_of(kernel).due == theorem_4(20, 42)


@pytest.mark.parametrize("change", [14, 16, 17], ids=["iv", "exactly p^[r]", "iii"])
def test_rules_iii_and_iv_after_a_job_that_has_ended_the_next_is_released_at_its_deadline(change):
    kernel = kernel_of_v(late_after=8)
    schedule = run(kernel, 40, [(10, 3), (13, 5), (change, change)], [2])
    assert releases(schedule) == [(10, 20, 10), (20, 24, 20), (24, 28, 24)]
    assert recovery_of(kernel).entered == change * SECOND


def test_rule_iv_a_released_job_that_is_not_due_soon_is_released_anew():
    kernel = kernel_of_v(late_after=11, busy_from=9)
    schedule = run(kernel, 40, [(10, 3), (12, 7), (12, 12)], [2], w_cost=16)
    assert releases(schedule) == [(12, 16, 25), (16, 20, 27), (20, 24, 29)]
    assert recovery_of(kernel).due == theorem_4(12, 30)


def test_rule_iv_with_its_new_deadline_a_job_goes_before_others():
    """That of `other`, due at 19, lies between v's new deadline and its old one, 20."""
    warehouse = (
        Builder(policy="aus")
        .files("v", period=10, phase=10, cost=2, late_after=11)
        .files("other", period=5, phase=14, cost=1)
        .continuous("w", period=1000, cost=100, phase=9)
        .build()
    )
    kernel = assemble(make_plan(warehouse))
    files = {
        "v": [(10 * SECOND, 3 * SECOND), (12 * SECOND, 12 * SECOND)],
        "other": [(14 * SECOND, 14 * SECOND)],
    }
    costs = {"v": [2 * SECOND], "other": [SECOND], "w": [9 * SECOND]}
    schedule = play(kernel, 30 * SECOND, costs, files)
    assert [job.table for job in schedule.jobs] == ["w", "v", "v", "other"]
    assert schedule.of("v")[0].deadline == 12 * SECOND + ceil(2 * SECOND / Fraction(7, 10))


def test_rule_v_a_running_job_that_is_overdue_is_followed_from_the_change_on():
    kernel = kernel_of_v(late_after=15)
    schedule = run(kernel, 40, [(10, 5), (22, 14), (22, 22)], [15, 2])
    assert releases(schedule) == [(10, 20, 10), (22, 26, 25), (26, 30, 27)]
    # Three files with the one that is being loaded.
    assert recovery_of(kernel).due == theorem_4(22, 30)


def test_rule_vi_a_running_job_that_ends_late_is_followed_from_its_deadline_on():
    kernel = kernel_of_v(late_after=12)
    schedule = run(kernel, 40, [(10, 5), (15, 9), (15, 15)], [15, 2])
    assert releases(schedule) == [(10, 20, 10), (20, 24, 25), (24, 28, 27)]
    assert recovery_of(kernel).due == theorem_4(20, 20)


def test_rule_vii_a_running_job_that_ends_in_time_is_followed_by_its_share_of_the_period():
    kernel = kernel_of_v(late_after=11)
    schedule = run(kernel, 40, [(10, 5), (12, 9), (12, 12)], [6, 2])
    # 16·(1 − 0.4) + 10·0.4 + 4
    assert releases(schedule) == [(10, 20, 10), (17.6, 21.6, 17.6), (21.6, 25.6, 21.6)]
    # At 16 two files are left.
    assert recovery_of(kernel).due == theorem_4(17.6, 21.6)


@pytest.mark.parametrize(("change", "cost"), [(12, 6), (15, 15)], ids=["vii", "vi"])
def test_while_the_job_runs_during_which_the_mode_changed_nothing_is_promised(change, cost):
    kernel = kernel_of_v(late_after=11)
    run(kernel, 10 + cost - 1, [(10, 5), (change, 9), (change, change)], [cost, 2])
    assert (recovery_of(kernel).due, recovery_of(kernel).in_time) == (None, None)


@settings(max_examples=50)
@given(st.integers(min_value=2_000_001, max_value=9_999_999))
def test_rule_vii_lies_between_the_finish_and_the_deadline_and_is_exact_but_for_rounding_up(cost_us):
    kernel = kernel_of_v(late_after=11)
    files = [(10 * SECOND, 5 * SECOND), (12 * SECOND, 9 * SECOND), (12 * SECOND, 12 * SECOND)]
    second = play(kernel, 40 * SECOND, {"v": [cost_us, SECOND], "w": [SECOND]}, {"v": files}).of("v")[1]
    finish, share = 10 * SECOND + cost_us, Fraction(4, 10)
    assert second.release == ceil(finish * (1 - share) + 10 * SECOND * share + 4 * SECOND)
    assert finish < second.release <= 20 * SECOND


# -- leaving: Rule RN ------------------------------------------------------------------------------------

LATE_FILES: Files = [(50, 20), (50, 30), (50, 40), (50, 50)]  # loaded by 64; the last job is due at 66


def test_the_next_job_after_recovery_is_released_when_a_file_comes_with_the_normal_period():
    schedule = run(kernel_of_v(late_after=15), 90, [*LATE_FILES, (70, 60)], [2])
    assert releases(schedule)[4:] == [(70, 80, 70)]


def test_a_file_that_comes_before_the_last_deadline_is_loaded_after_it_with_the_normal_period():
    schedule = run(kernel_of_v(late_after=15), 90, [*LATE_FILES, (65, 60)], [2])
    assert releases(schedule)[4:] == [(66, 76, 66)]


@pytest.mark.parametrize(("end", "mode"), [(63, RECOVERING), (64, LEAVING), (65, LEAVING), (66, NORMAL)])
def test_recovery_ends_with_the_last_file_and_recovery_mode_with_the_deadline(end, mode):
    kernel = kernel_of_v(late_after=15)
    run(kernel, end, LATE_FILES, [2])
    assert rule_of(kernel.tasks[0]).mode == mode
    assert recovery_of(kernel).ended == (None if mode == RECOVERING else 64 * SECOND)


def test_recovery_mode_ends_with_a_job_that_ends_after_its_deadline():
    kernel = kernel_of_v(late_after=15)
    run(kernel, 67, LATE_FILES, [2, 2, 2, 5])
    assert rule_of(kernel.tasks[0]).mode == NORMAL
    assert recovery_of(kernel).ended == 67 * SECOND


@pytest.mark.parametrize("cost", [2, 4], ids=["before its deadline", "at its deadline"])
def test_a_file_that_comes_as_the_last_job_ends_is_part_of_the_recovery(cost):
    """FRESH(V, f) is false then, as in figure 7 at 16."""
    kernel = kernel_of_v(late_after=15)
    schedule = run(kernel, 90, [*LATE_FILES, (62 + cost, 60)], [2, 2, 2, cost, 2])
    assert releases(schedule)[4:] == [(66, 70, 66)]
    assert recovery_of(kernel).ended == 68 * SECOND


def test_a_table_that_is_late_again_before_its_last_deadline_enters_again_after_it():
    kernel = kernel_of_v(late_after=13)
    run(kernel, 65, [*LATE_FILES, (65, 57), (65, 65)], [2])
    assert rule_of(kernel.tasks[0]).mode == LEAVING

    kernel = kernel_of_v(late_after=13)
    schedule = run(kernel, 80, [*LATE_FILES, (65, 57), (65, 65)], [2])
    assert releases(schedule)[4:] == [(66, 70, 66), (70, 74, 70)]
    assert recovery_of(kernel) == Recovery(66 * SECOND, theorem_4(66, 20), 72 * SECOND)


def test_a_single_long_file_that_is_being_loaded_leaves_nothing_to_recover():
    kernel = kernel_of_v(late_after=15)
    schedule = run(kernel, 70, [(10, 10), (50, 30)], [2])
    assert releases(schedule) == [(10, 20, 10), (50, 54, 50)]
    assert recovery_of(kernel).ended == 52 * SECOND


# -- promises: Theorem 4 ---------------------------------------------------------------------------------


def test_a_recovery_is_in_time_if_it_ends_by_its_due_and_open_until_it_ends():
    assert Recovery(0, due=10, ended=10).in_time is True
    assert Recovery(0, due=10, ended=11).in_time is False
    assert Recovery(0, due=10).in_time is None
    assert Recovery(0, due=None, ended=10).in_time is None


@pytest.mark.parametrize("found_after_us", [SECOND, SECOND + 1])
def test_live_a_file_is_found_a_moment_after_it_came_which_is_no_outage(found_after_us):
    plan = make_plan(
        Builder(policy="aus").files("v", period=10, cost=2).files("w", period=10, cost=2).build()
    )
    for kernel, excused in (
        (assemble(plan), True),
        (assemble(plan, 0, {"v": None, "w": None}), found_after_us > SECOND),
    ):
        kernel.handle(0, [FileArrived("v", DataFile(1, "1"))])
        kernel.handle(10 * SECOND + found_after_us, [FileArrived("v", DataFile(2, "2"))])
        assert rule_of(kernel.tasks[0]).excused == excused


def test_live_a_file_that_is_found_late_is_regular_and_the_next_may_be_found_late_too():
    plan = make_plan(
        Builder(policy="aus-slack").files("v", period=10, phase=10, cost=2).files("w", period=10).build()
    )
    kernel = assemble(plan, 0, {"v": None, "w": None})
    kernel.handle(10_300_000, [FileArrived("v", DataFile(10 * SECOND, "1"))])
    assert rule_of(kernel.tasks[0]).next_arrival(kernel.now) == (20 * SECOND, 21 * SECOND)


def test_with_a_jitter_of_a_whole_period_a_file_may_be_of_either_of_two_instants():
    plan = make_plan(Builder(policy="aus-slack").files("v", period=10, phase=10, jitter=10, cost=2).build())
    rule = rule_of(assemble(plan).tasks[0])
    assert rule.next_arrival(0) == (0, 20 * SECOND)


def restarted(piece: int, then: list[int]) -> Kernel:
    """After 600 s off: a piece of v's 60 files is found at once, others a millisecond after each other."""
    plan = make_plan(
        Builder(policy="aus")
        .files("v", period=10, phase=10, cost=2)
        .files("w", period=10, phase=10, cost=2)
        .build()
    )
    now = 1_000 * SECOND
    kernel = assemble(plan, now, {"v": 400 * SECOND, "w": 990 * SECOND})
    kernel.handle(now, [FileArrived("w", DataFile(now, "w"))])
    number = 0
    for count in (piece, *then):
        now += 1_000
        files = [DataFile((410 + 10 * (number + each)) * SECOND, number + each) for each in range(count)]
        number += count
        kernel.handle(now, [FileArrived("v", file) for file in files])
    return kernel


@pytest.mark.parametrize("then", [[54], [1] * 54], ids=["at once", "one by one"])
def test_live_a_backlog_that_is_found_in_pieces_is_promised_for_as_a_whole(then):
    found, whole = restarted(6, then), restarted(60, [])
    assert recovery_of(found).entered == recovery_of(whole).entered
    due, due_of_whole = recovery_of(found).due, recovery_of(whole).due
    assert due is not None
    assert due_of_whole is not None
    # Of one by one the last file may not count yet: one that comes at any moment is part of Theorem 4.
    assert due >= due_of_whole - (10 * SECOND if len(then) > 1 else 0)


def test_a_regular_file_soon_after_what_piled_up_leaves_the_promise_as_it_is():
    kernel = kernel_of_v(late_after=15)
    run(kernel, 91, [*((86, 10 * number) for number in range(1, 9)), (90, 90)], [2])
    assert recovery_of(kernel) == Recovery(86 * SECOND, theorem_4(86, 86))


def test_a_second_outage_during_recovery_moves_the_promise():
    files = [(80, 10 * number) for number in range(1, 9)]
    before, after = kernel_of_v(late_after=15), kernel_of_v(late_after=15)
    run(before, 99, [*files, (100, 90), (100, 100)], [2])
    run(after, 100, [*files, (100, 90), (100, 100)], [2])
    assert recovery_of(before).due == theorem_4(80, 80)
    # The next release after 100 is at 104 at the latest. Five files are left then, more than the second
    # outage was long: what is left of the first one is among them.
    assert recovery_of(after) == Recovery(80 * SECOND, theorem_4(104, 5 * 10 + 4))


def test_a_regular_file_during_recovery_leaves_the_promise_as_it_is():
    kernel = kernel_of_v(late_after=15)
    run(kernel, 91, [*((80, 10 * number) for number in range(1, 9)), (90, 90)], [2])
    assert recovery_of(kernel) == Recovery(80 * SECOND, theorem_4(80, 80))


def test_a_feeds_jitter_counts_in_the_promise():
    warehouse = Builder(policy="aus").files("v", period=10, phase=10, jitter=3, cost=2, late_after=15).build()
    kernel = assemble(make_plan(warehouse))
    files = [(50 * SECOND, at * SECOND) for at in (20, 30, 40, 50)]
    play(kernel, 51 * SECOND, {"v": [2 * SECOND]}, {"v": files})
    # Alone it has Θ = 10 and p^[r] = e.
    assert recovery_of(kernel).due == theorem_4(50, 50, response=10, p_r=2, jitter=3)


def test_where_nothing_is_spare_a_late_table_does_not_enter_recovery():
    warehouse = Builder(policy="aus").files("v", period=10, phase=10, cost=10, late_after=15).build()
    kernel = assemble(make_plan(warehouse))
    files = [(50 * SECOND, 30 * SECOND), (50 * SECOND, 50 * SECOND)]
    play(kernel, 55 * SECOND, {"v": [10 * SECOND]}, {"v": files})
    assert rule_of(kernel.tasks[0]).terms.period_us == 10 * SECOND
    assert rule_of(kernel.tasks[0]).recovery is None
    assert rule_of(kernel.tasks[0]).mode == NORMAL


# -- failures ----------------------------------------------------------------------------------------------


def test_a_table_that_enters_while_it_backs_off_is_promised_something_when_that_is_over():
    kernel = kernel_of_v(late_after=11)
    (start,) = kernel.handle(10 * SECOND, [FileArrived("v", DataFile(3 * SECOND, 1))])
    kernel.handle(11 * SECOND, [JobFailed(start.job, retry_at=30 * SECOND)])
    late = [FileArrived("v", DataFile(at * SECOND, number)) for number, at in ((2, 7), (3, 12))]
    assert kernel.handle(12 * SECOND, late) == []
    v = kernel.tasks[0]
    assert v.state == BACKED_OFF
    assert rule_of(v).excused
    assert recovery_of(kernel) == Recovery(12 * SECOND, None)
    validate(kernel)

    (again,) = kernel.handle(30 * SECOND, [])
    assert (again.job.release, again.job.deadline) == (30 * SECOND, 34 * SECOND)
    assert recovery_of(kernel) == Recovery(12 * SECOND, theorem_4(30, 30))
    validate(kernel)

    # What was promised is withdrawn when it fails once more.
    kernel.handle(31 * SECOND, [JobFailed(again.job, retry_at=32 * SECOND)])
    assert recovery_of(kernel) == Recovery(12 * SECOND, None)
    # An idle track takes it before its release at 34, of which the promise counts.
    (once_more,) = kernel.handle(32 * SECOND, [])
    assert once_more.job.release == 34 * SECOND
    assert recovery_of(kernel) == Recovery(12 * SECOND, theorem_4(34, 32))
    validate(kernel)


# -- derived tables ----------------------------------------------------------------------------------------


def kernel_of_derived(tracks: int = 2) -> Kernel:
    """`d` reads `s`; two tables that never run leave 0.3 of two tracks, so that p^[r] of both is 2.5."""
    builder = (
        Builder(tracks, policy="aus")
        .files("s", period=10, phase=10, cost=1, late_after=1000)
        .derived("d", ["s"], period=10, cost=1, late_after=15)
        .continuous("w1", period=1, cost=1, phase=NEVER)
        .continuous("w2", period=2, cost=1, phase=NEVER)
    )
    return assemble(make_plan(builder.build()))


def run_derived(
    kernel: Kernel, end: float, files: Files, s_costs: list[float], d_cost: float = 1
) -> Schedule:
    costs = {"s": [round(cost * SECOND) for cost in s_costs], "d": [round(d_cost * SECOND)]}
    others = {task.name: [SECOND] for task in kernel.tasks[2:]}
    arrivals = {"s": [(arrival * SECOND, timestamp * SECOND) for arrival, timestamp in files]}
    return play(kernel, round(end * SECOND), {**costs, **others}, arrivals)


def recovery_of_derived(kernel: Kernel) -> Recovery:
    recovery = rule_of(kernel.tasks[1]).recovery
    assert recovery is not None
    return recovery


def test_a_derived_table_recovers_a_period_of_data_in_every_recovery_period():
    kernel = kernel_of_derived()
    schedule = run_derived(kernel, 65, [(10, 10), (50, 50)], [1])
    assert releases(schedule, "d") == [
        (11, 21, 11),
        (51, 53.5, 51),
        (53.5, 56, 53.5),
        (56, 58.5, 56),
        (58.5, 61, 58.5),
    ]
    # Its staleness takes the place of λ + J; Θ = 10 + 1 + (1 + 1 − 1) / (2 − 1).
    due = theorem_4(51, 41, response=12, p_r=2.5)
    assert recovery_of_derived(kernel) == Recovery(51 * SECOND, due, 59_500_000)


def test_a_derived_table_has_recovered_with_a_job_that_was_shorter_than_it_may_be():
    """While it runs its source moves on, so that it is not fresh when it ends."""
    kernel = kernel_of_derived()
    schedule = run_derived(kernel, 80, [(10, 10), (45, 45), (55, 55)], [1, 1, 0.2], d_cost=2)
    assert [(job.start / SECOND, job.loaded_to / SECOND) for job in schedule.of("d")] == [
        (11, 10),
        (46, 20),
        (48.5, 30),
        (51, 40),
        (53.5, 45),  # s reaches 55 at 55.2
        (56, 55),
    ]
    assert recovery_of_derived(kernel).ended == 55_500_000
    # The next job is released at the deadline of the last, with the normal period.
    assert releases(schedule, "d")[5] == (56, 66, 56)


def test_a_derived_table_whose_source_jumps_while_it_runs_is_found_late_when_it_ends():
    kernel = kernel_of_derived()
    schedule = run_derived(kernel, 54, [(10, 10), (41, 20), (49, 49)], [1], d_cost=12)
    assert [job.finish // SECOND for job in schedule.jobs] == [11, 23, 42, 52, 54]
    assert kernel.tasks[0].freshness == 49 * SECOND  # since 52, while d ran
    assert recovery_of_derived(kernel).entered == 54 * SECOND


def test_a_derived_table_is_promised_something_once_its_sources_are_healthy():
    builder = (
        Builder(policy="aus")
        .pool("marts", policy="aus")
        .files("s", period=10, phase=10, cost=1, late_after=35)
        .derived("d", ["s"], period=10, cost=1, pool="marts", late_after=5)
    )
    files = [(10, 10), (60, 30), (60, 42), (60, 60)]

    def recovery_at(end: float) -> Recovery:
        kernel = assemble(make_plan(builder.build()))
        run_derived(kernel, end, files, [1], d_cost=0.4)
        return recovery_of_derived(kernel)

    # s is 31 stale at 61, one more than it may be; at 62 it is healthy.
    assert recovery_at(61.9) == Recovery(61 * SECOND, None)
    # By then d has reached 20, so it is 42 stale, and its next release is at 63 at the latest.
    assert recovery_at(62) == Recovery(61 * SECOND, theorem_4(63, 43, response=10, p_r=1))
    assert recovery_at(70).in_time


def test_a_derived_table_that_runs_while_its_sources_become_healthy_is_promised_something_when_it_ends():
    builder = (
        Builder(policy="aus")
        .pool("marts", policy="aus")
        .files("s", period=10, phase=10, cost=1, late_after=35)
        .derived("d", ["s"], period=10, cost=1, pool="marts", late_after=5)
    )
    kernel = assemble(make_plan(builder.build()))
    # s is healthy from 61.5 on; d is updated from 61 to 62, from then to 63, and so on.
    run_derived(kernel, 62.2, [(10, 10), (60, 30), (60, 42), (60, 60)], [1, 1, 0.5, 1], d_cost=1)
    assert recovery_of_derived(kernel) == Recovery(61 * SECOND, theorem_4(63, 43, response=10, p_r=1))
