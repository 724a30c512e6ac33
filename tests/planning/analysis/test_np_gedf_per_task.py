"""Non-preemptive global EDF, task by task: its definition, the papers' numbers, and schedules."""

from fractions import Fraction
from itertools import combinations
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.planning.analysis.np_gedf import NpGedf
from freshline.planning.analysis.np_gedf_per_task import NpGedfPerTask
from freshline.planning.analysis.utilization import tracks_at_least
from plain_schedulers import Tasks, apart, np_edf_tardiness, task_lists


def work_left_by_trying_all(tasks: Tasks, m: int) -> Fraction:
    """σ as the largest solution over all choices of the tasks that carry in and of those that block."""
    places = range(len(tasks))
    return max(
        (
            m * sum(tasks[j][0] for j in chosen)
            - sum(Fraction(tasks[j][0] ** 2, tasks[j][1]) for j in carriers)
        )
        / (m - sum((Fraction(*tasks[j]) for j in carriers), Fraction(0)))
        for size in range(1, m + 1)
        for chosen in combinations(places, size)
        for carrying in range(min(size, m - 1) + 1)
        for carriers in combinations(chosen, carrying)
    )


@pytest.mark.parametrize("counts", [(3, 3, 3, 21), (2, 2, 2, 17)], ids=["filled by 0.11", "filled by 0.132"])
def test_paper_004_on_four_tracks(counts: tuple[int, ...]) -> None:
    periods = [p for p, count in zip((300, 900, 3_600, 28_800), counts, strict=True) for _ in range(count)]
    costs = [period * 132 for period in periods]
    tardiness = NpGedfPerTask(costs, [period * 1_000 for period in periods]).tardiness(4)
    assert tardiness is not None
    in_seconds = [time / 1_000 for time in sorted(set(tardiness))]
    assert in_seconds == pytest.approx([4144.6, 4204.0, 4471.3, 6966.1], abs=0.05)


def test_the_schedule_that_refutes_a_bound_with_fewer_blockers_keeps_to_this_one() -> None:
    tasks = [(128, 256)] * 2 + [(1, 8)] * 8
    assert NpGedfPerTask(*apart(tasks)).tardiness(2) == [214] * 2 + [150] * 8
    assert max(np_edf_tardiness(tasks, [0, 0, *[1] * 8], tracks=2, until=4_096)[2:]) >= 120


def test_nothing_is_said_of_an_overload_or_of_a_cost_above_its_period() -> None:
    assert NpGedfPerTask([2, 2, 2], [3, 3, 3]).tardiness(1) is None
    assert NpGedfPerTask([4, 1, 1], [3, 9, 9]).tardiness(2) is None


@settings(deadline=None)
@given(task_lists(6, 30, size_min=3), st.integers(0, 2))
def test_the_work_left_is_the_least_that_satisfies_every_choice(tasks: Tasks, more: int) -> None:
    tracks = min(tracks_at_least(*apart(tasks)) + more, len(tasks) - 1)
    analysis = NpGedfPerTask(*apart(tasks))
    exact = work_left_by_trying_all(tasks, tracks)
    assert analysis.work_left(tracks) == -(-exact.numerator // exact.denominator)
    assert analysis.work_left_at_least(tracks) <= analysis.work_left(tracks)


@given(task_lists(12, 60, size_min=3), st.integers(0, 3))
def test_it_is_never_above_the_bound_with_one_x_for_all(tasks: Tasks, more: int) -> None:
    costs, periods = apart(tasks)
    tracks = min(tracks_at_least(costs, periods) + more, len(tasks) - 1)
    tardiness, x = NpGedfPerTask(costs, periods).tardiness(tracks), NpGedf(costs, periods).x(tracks)
    if tardiness is not None and x is not None:
        assert all(time <= cost + ceil(x) for time, cost in zip(tardiness, costs, strict=True))
    else:
        assert tardiness is None
        assert x is None


def blocked_work_by_trying_all(tasks: Tasks, m: int, blocking: int) -> Fraction:
    """σ where the tasks that block may do so with batches, over all choices."""
    places = range(len(tasks))
    return max(
        (
            m * sum(tasks[j][0] if j in carriers else max(tasks[j][0], blocking) for j in chosen)
            - sum(Fraction(tasks[j][0] ** 2, tasks[j][1]) for j in carriers)
        )
        / (m - sum((Fraction(*tasks[j]) for j in carriers), Fraction(0)))
        for size in range(1, m + 1)
        for chosen in combinations(places, size)
        for carrying in range(min(size, m - 1) + 1)
        for carriers in combinations(chosen, carrying)
    )


@settings(deadline=None)
@given(task_lists(6, 30, size_min=3), st.integers(0, 2), st.integers(0, 60))
def test_with_batches_the_work_left_is_the_least_that_satisfies_every_choice(
    tasks: Tasks, more: int, blocking: int
) -> None:
    tracks = min(tracks_at_least(*apart(tasks)) + more, len(tasks) - 1)
    analysis = NpGedfPerTask(*apart(tasks), blocking)
    exact = blocked_work_by_trying_all(tasks, tracks, blocking)
    assert analysis.work_left(tracks) == -(-exact.numerator // exact.denominator)
    assert analysis.work_left_at_least(tracks) <= analysis.work_left(tracks)


@settings(deadline=None)
@given(task_lists(7, 30, size_min=3), st.integers(0, 2))
def test_batches_of_the_mth_largest_cost_are_counted_already(tasks: Tasks, more: int) -> None:
    costs, periods = apart(tasks)
    tracks = min(tracks_at_least(costs, periods) + more, len(tasks) - 1)
    free = sorted(costs, reverse=True)[tracks - 1]
    without = NpGedfPerTask(costs, periods).work_left(tracks)
    assert NpGedfPerTask(costs, periods, free).work_left(tracks) == without
