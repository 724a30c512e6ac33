"""What is proven for a non-preemptive EDF pool holds in every schedule, and is the smallest bound known."""

from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.planning.analysis.response import tardiness_bounds
from freshline.planning.analysis.utilization import tracks_at_least
from plain_schedulers import Tasks, apart, np_edf_tardiness, task_lists


def test_no_more_tasks_than_tracks_are_never_late() -> None:
    assert tardiness_bounds([3, 5], [3, 9], 2) == [0, 0]
    assert tardiness_bounds([3], [3], 1) == [0]


def test_one_track_that_passes_jeffay_s_test_is_never_late() -> None:
    assert tardiness_bounds([1, 1], [4, 8], 1) == [0, 0]


def test_one_track_that_fails_it_is_late_by_the_blocking() -> None:
    assert tardiness_bounds([1, 2], [2, 6], 1) == [2, 0]


def test_several_tracks_are_late_by_the_per_task_bound_rounded_up() -> None:
    # 2·σ = 2·(3 + 3) + 3/5·(σ − 3), so σ = 51/7; x is 22/7 for the first task and 15/7 for the others.
    assert tardiness_bounds([1, 3, 3], [4, 5, 6], 2) == [5, 6, 6]


def test_nothing_is_bounded_in_an_overload_or_with_a_cost_above_its_period() -> None:
    assert tardiness_bounds([2, 2, 2], [3, 3, 3], 1) is None
    assert tardiness_bounds([3, 3, 3, 3, 3], [4, 4, 4, 4, 4], 3) is None
    assert tardiness_bounds([4, 1], [3, 9], 2) is None


@sampled(300)
@given(task_lists(9, 40, size_min=2), st.integers(0, 1), st.data())
def test_no_schedule_is_later_than_the_bounds(tasks: Tasks, more: int, data: st.DataObject) -> None:
    costs, periods = apart(tasks)
    tracks = tracks_at_least(costs, periods) + more
    bounds = tardiness_bounds(costs, periods, tracks)
    assert bounds is not None
    offsets = [data.draw(st.integers(0, period)) for period in periods]
    # Up to a period ahead of time, or out of a backlog that is always there.
    early = [data.draw(st.integers(0, period) | st.just(10**6)) for period in periods]
    for earliness in (None, early):
        tardiness = np_edf_tardiness(tasks, offsets, tracks, until=600, early=earliness)
        assert all(seen <= bound for seen, bound in zip(tardiness, bounds, strict=True)), (tardiness, bounds)
