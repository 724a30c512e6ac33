"""Preemptive global EDF: both bounds against their equations, and against schedules."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.analysis.gedf import compliant_vector, devi_anderson
from freshline.planning.analysis.utilization import tracks_at_least
from plain_schedulers import Tasks, apart, preemptive_edf_tardiness, task_lists


def test_devi_anderson_on_a_set_worked_by_hand() -> None:
    # U = 2.7, so Λ = 2: x = (9 + 8 − 4)/(3 − 0.9) = 130/21.
    assert devi_anderson([9, 8, 6, 4], [10, 10, 10, 10], 3) == [Fraction(130, 21) + e for e in (9, 8, 6, 4)]


def test_the_compliant_vector_on_a_set_worked_by_hand() -> None:
    # All periods are equal, so S = e; U = 1.5, k = 1: 2·s = 3 − 1/4 + s/2, s = 11/6; 11/6 − 1/2 + 1 = 7/3.
    assert compliant_vector([1, 1, 1], [2, 2, 2], 2) == [Fraction(7, 3)] * 3


def test_what_fits_one_track_is_never_late() -> None:
    assert devi_anderson([1, 1], [2, 4], 1) == [0, 0]
    assert devi_anderson([1, 1], [2, 4], 2) == [0, 0]


def test_nothing_is_said_of_an_overload_or_of_a_cost_above_its_period() -> None:
    assert devi_anderson([2, 2, 2], [3, 3, 3], 1) is None
    assert compliant_vector([2, 2, 2], [3, 3, 3], 1) is None
    assert devi_anderson([4, 1], [3, 9], 2) is None
    assert compliant_vector([4, 1], [3, 9], 2) is None


@given(task_lists(8, 40), st.integers(0, 2))
def test_the_compliant_vector_solves_its_equation(tasks: Tasks, more: int) -> None:
    costs, periods = apart(tasks)
    k = tracks_at_least(costs, periods) - 1
    m = k + 1 + more
    response_times = compliant_vector(costs, periods, m)
    assert response_times is not None
    p_min = min(periods)
    solutions = {
        response + Fraction(e, m) - e - p + p_min
        for response, (e, p) in zip(response_times, tasks, strict=True)
    }
    assert len(solutions) == 1
    s = solutions.pop()
    shares = [Fraction(e * p_min, p) for e, p in tasks]
    carried = [
        e - share - Fraction(e * e, p * m) + Fraction(e, p) * s
        for share, (e, p) in zip(shares, tasks, strict=True)
    ]
    assert m * s == sum(shares) + sum(sorted(carried, reverse=True)[:k])


@given(task_lists(6, 12, size_min=2), st.integers(0, 1), st.data())
def test_no_schedule_is_later_than_the_bounds(tasks: Tasks, more: int, data: st.DataObject) -> None:
    costs, periods = apart(tasks)
    tracks = tracks_at_least(costs, periods) + more
    offsets = [data.draw(st.integers(0, period)) for period in periods]
    tardiness = preemptive_edf_tardiness(tasks, offsets, tracks, until=150)
    bounds, response_times = devi_anderson(costs, periods, tracks), compliant_vector(costs, periods, tracks)
    assert bounds is not None
    assert response_times is not None
    for seen, bound, response, period in zip(tardiness, bounds, response_times, periods, strict=True):
        assert seen <= bound
        assert seen <= max(0, response - period)
