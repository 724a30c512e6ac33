"""Batches that start where nothing waits block others: by no more than every bound counts with."""

from hypothesis import assume, given
from hypothesis import strategies as st

from cases import sampled
from freshline.planning.analysis.np_edf import schedulable, spare_time
from freshline.planning.analysis.response import tardiness_bounds
from freshline.planning.analysis.utilization import tracks_at_least
from plain_schedulers import Tasks, apart, np_edf_tardiness_with_batches, task_lists


def test_two_batches_of_the_largest_cost_break_the_bound_that_does_not_count_them():
    tasks = [(100, 10_000), (10, 30), (10, 1_000), (10, 1_000)]  # in tenths
    counted_not = tardiness_bounds(*apart(tasks), 2)
    late = np_edf_tardiness_with_batches(tasks, [500, 1, 500, 500], 2, 400, [(2, 100), (3, 100)])
    counted = tardiness_bounds(*apart(tasks), 2, blocking=100)
    assert counted_not is not None
    assert counted is not None
    assert (counted_not[1], late[1]) == (70, 79)
    assert late[1] <= counted[1]


def test_on_one_track_a_batch_may_take_what_the_exact_test_leaves():
    tasks = [(4, 6), (1, 7), (1, 8)]
    assert schedulable(*apart(tasks))
    assert spare_time(*apart(tasks)) == 2
    offsets = [1, 1, 1]
    assert np_edf_tardiness_with_batches(tasks, offsets, 1, 60, [(2, 4)])[0] > 0
    assert np_edf_tardiness_with_batches(tasks, offsets, 1, 60, [(2, 2)]) == [0, 0, 0]
    assert not schedulable(*apart(tasks), blocking=3)
    assert schedulable(*apart(tasks), blocking=2)


batch_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 60)), max_size=6)


@sampled(400)
@given(task_lists(6, 24, size_min=2), st.integers(1, 3), st.integers(0, 40), batch_lists, st.data())
def test_no_job_is_later_than_the_bound_that_counts_batches(
    tasks: Tasks, tracks: int, blocking: int, batches: list[tuple[int, int]], data: st.DataObject
) -> None:
    costs, periods = apart(tasks)
    tracks = max(tracks, tracks_at_least(costs, periods))
    bounds = tardiness_bounds(costs, periods, tracks, blocking)
    assert bounds is not None
    if len(tasks) <= tracks:
        limit = max(periods)
    elif tracks == 1:
        limit = max(blocking, spare_time(costs, periods) or 0)
    else:
        limit = max(blocking, sorted(costs, reverse=True)[tracks - 1])
    offsets = [data.draw(st.integers(0, 30)) for _ in tasks]
    allowed = [(task % len(tasks), min(cost, limit, periods[task % len(tasks)])) for task, cost in batches]
    assume(limit > 0)
    late = np_edf_tardiness_with_batches(tasks, offsets, tracks, 400, allowed)
    assert all(time <= bound for time, bound in zip(late, bounds, strict=True)), (late, bounds)


@given(task_lists(6, 30, size_min=2), st.integers(0, 20))
def test_the_exact_test_with_batches_asks_whether_what_is_spare_suffices(tasks: Tasks, blocking: int) -> None:
    costs, periods = apart(tasks)
    spare = spare_time(costs, periods)
    decided = schedulable(costs, periods, blocking=blocking)
    if spare is not None and decided is not None:
        assert decided == (spare >= blocking)
