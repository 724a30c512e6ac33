"""Paper 001's recovery periods, tardiness while periods change, and time to recover."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.planning.analysis.recovery_periods import (
    adaptive_tardiness,
    common_recovery_periods,
    fastest_recovery_periods,
    recovery_time,
)
from plain_schedulers import Tasks, apart, task_lists


@st.composite
def fitting(draw: st.DrawFn) -> tuple[Tasks, int]:
    """Tasks that fit on so many tracks."""
    tracks = draw(st.integers(1, 4))
    tasks = draw(task_lists(size_max=8, period_max=10**9))
    assume(utilization(tasks) <= tracks)
    return tasks, tracks


@st.composite
def filling(draw: st.DrawFn) -> tuple[Tasks, int]:
    """Tasks that fill so many tracks exactly, their periods any multiples of a common one."""
    tracks = draw(st.integers(1, 3))
    whole = draw(st.integers(3, 10**7))
    parts: list[int] = []
    while (left := tracks * whole - sum(parts)) > 0 and len(parts) < 9:
        parts.append(draw(st.integers(1, min(whole, left))))
    while (left := tracks * whole - sum(parts)) > 0:
        parts.append(min(whole, left))
    multiples = draw(st.lists(st.integers(1, 100), min_size=len(parts), max_size=len(parts)))
    return [(part * by, whole * by) for part, by in zip(parts, multiples, strict=True)], tracks


def utilization(tasks: Tasks) -> Fraction:
    return sum((Fraction(cost, period) for cost, period in tasks), Fraction(0))


task_sets = fitting() | filling()


# -- the paper's experiment ----------------------------------------------------------------------------


def experiment(thousandths: int) -> Tasks:
    """Seven tables of 300 s and seven of 900 s, in microseconds; an update costs so much of the period."""
    return [(p * SECOND * thousandths // 1000, p * SECOND) for p in (300, 900) for _ in range(7)]


def test_average_case_provisioning_of_the_paper_s_experiment():
    costs, periods = apart(experiment(110))
    recovery = fastest_recovery_periods(costs, periods, 2)
    assert recovery == [ceil(Fraction(11, 57) * period) for period in periods]
    assert [round(period / short, 2) for period, short in zip(periods, recovery, strict=True)] == [5.18] * 14
    tardiness = adaptive_tardiness(costs, periods, recovery, 2)
    assert tardiness is not None
    x = [late - cost for late, cost in zip(tardiness, costs, strict=True)]
    assert [round(each / SECOND, 1) for each in x] == [115.4] * 14
    # A = Θ + p + max(φ, p + J + κ), with phases of at most a period and without jitter.
    staleness = [3 * period + late for period, late in zip(periods, tardiness, strict=True)]
    assert [round(each / SECOND, 1) for each in staleness] == [1048.4] * 7 + [2914.4] * 7


def test_worst_case_provisioning_of_the_paper_s_experiment():
    costs, periods = apart(experiment(132))
    recovery = fastest_recovery_periods(costs, periods, 2)
    assert [round(period / short, 2) for period, short in zip(periods, recovery, strict=True)] == [2.15] * 14


def test_the_alternative_in_the_paper_s_experiment_divides_what_is_spare_among_all():
    costs, periods = apart(experiment(110))
    recovery = common_recovery_periods(costs, periods, 2)
    assert recovery == [period * 77 // 100 for period in periods]  # U / m = 1.54 / 2


# -- (7) -----------------------------------------------------------------------------------------------


@given(task_sets)
def test_fastest_recovery_periods_are_those_of_equation_7(tasks_and_tracks):
    tasks, tracks = tasks_and_tracks
    total = utilization(tasks)
    expected = [
        min(period, ceil(cost / min(Fraction(1), tracks - total + Fraction(cost, period))))
        for cost, period in tasks
    ]
    assert fastest_recovery_periods(*apart(tasks), tracks) == expected


@given(task_sets)
def test_any_one_task_may_recover_with_its_fastest_period(tasks_and_tracks):
    tasks, tracks = tasks_and_tracks
    total = utilization(tasks)
    for (cost, period), short in zip(tasks, fastest_recovery_periods(*apart(tasks), tracks), strict=True):
        assert cost <= short <= period
        assert total - Fraction(cost, period) + Fraction(cost, short) <= tracks
        # A shorter one would be shorter than the cost, or would not fit.
        faster = Fraction(cost, short - 1) if short > 1 else Fraction(2)
        assert faster > 1 or total - Fraction(cost, period) + faster > tracks


@given(filling())
def test_where_nothing_is_spare_nothing_recovers_faster(tasks_and_tracks):
    tasks, tracks = tasks_and_tracks
    periods = [period for _, period in tasks]
    assert fastest_recovery_periods(*apart(tasks), tracks) == periods
    assert common_recovery_periods(*apart(tasks), tracks) == periods


def test_recovery_periods_are_the_normal_ones_where_the_tracks_are_too_few():
    assert fastest_recovery_periods([3, 3], [4, 4], 1) == [4, 4]
    assert common_recovery_periods([3, 3], [4, 4], 1) == [4, 4]


# -- the alternative -----------------------------------------------------------------------------------


@given(task_sets)
def test_common_recovery_periods_are_those_of_the_alternative(tasks_and_tracks):
    tasks, tracks = tasks_and_tracks
    total = utilization(tasks)
    expected = [max(cost, ceil(period * total / tracks)) for cost, period in tasks]
    assert common_recovery_periods(*apart(tasks), tracks) == expected


@given(task_sets)
def test_all_tasks_may_recover_at_once_with_their_common_periods(tasks_and_tracks):
    tasks, tracks = tasks_and_tracks
    recovery = common_recovery_periods(*apart(tasks), tracks)
    assert all(cost <= short <= period for (cost, period), short in zip(tasks, recovery, strict=True))
    assert sum(Fraction(cost, short) for (cost, _), short in zip(tasks, recovery, strict=True)) <= tracks


# -- Theorem 1 -----------------------------------------------------------------------------------------


@given(task_sets, st.booleans())
def test_tardiness_is_that_of_theorem_1_with_recovery_periods(tasks_and_tracks, together):
    tasks, tracks = tasks_and_tracks
    costs, periods = apart(tasks)
    periods_of = common_recovery_periods if together else fastest_recovery_periods
    recovery = periods_of(costs, periods, tracks)
    tardiness = adaptive_tardiness(costs, periods, recovery, tracks)
    if len(tasks) <= tracks:
        assert tardiness == [0] * len(tasks)
        return
    excess = sum(sorted(costs)[-tracks:]) - min(costs)
    rates = sorted(Fraction(cost, short) for cost, short in zip(costs, recovery, strict=True))
    carried = sum(rates[len(rates) - (tracks - 1) :], Fraction(0))
    assert tardiness == [cost + ceil(excess / (tracks - carried)) for cost in costs]


def test_no_tardiness_is_proven_where_the_tracks_are_too_few_or_a_cost_exceeds_its_period():
    assert adaptive_tardiness([3, 3, 3], [4, 4, 4], [4, 4, 4], 2) is None
    assert adaptive_tardiness([5, 1, 1], [4, 4, 4], [4, 4, 4], 2) is None


# -- Theorem 4 -----------------------------------------------------------------------------------------


def counted(response: int, period: int, recovery_period: int, outage: int, jitter: int) -> int:
    """When the first job ends that leaves no file, if all comes as late as the theorem allows.

    Jobs are released every recovery period from 0 on and take the whole response bound; the files of
    [−λ − J, t] come, the first of them at its beginning.
    """
    done = 0
    while True:
        end = done * recovery_period + response
        done += 1
        if done >= (outage + jitter + end) // period + 1:
            return end


@given(st.data())
def test_recovery_time_is_enough_for_the_files_that_come_and_hardly_more(data):
    period = data.draw(st.integers(2, 1000))
    recovery_period = data.draw(st.integers(max(1, period // 50), period - 1))
    response = data.draw(st.integers(recovery_period, 5 * period))
    outage, jitter = data.draw(st.integers(0, 30 * period)), data.draw(st.integers(0, period))
    x = recovery_time(response, period, recovery_period, outage, jitter)
    assert x is not None
    needed = counted(response, period, recovery_period, outage, jitter)
    assert needed <= x
    # It rounds the files up, and the jobs down, by one each.
    assert x - needed < Fraction(2 * period * recovery_period, period - recovery_period) + 1


def test_recovery_time_with_the_numbers_of_figure_7():
    assert recovery_time(response=8, period=6, recovery_period=3, outage=18) == 40


def test_recovery_time_is_rounded_up():
    assert recovery_time(10, 10, 3, 5) == ceil(Fraction(10 * 10 + 15 * 3, 7)) == 21


@pytest.mark.parametrize("recovery_period", [10, 11])
def test_no_recovery_time_is_promised_without_a_shorter_period(recovery_period):
    assert recovery_time(10, 10, recovery_period, 5) is None
