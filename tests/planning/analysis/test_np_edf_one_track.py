"""Non-preemptive EDF on one track: Jeffay's test in dense time, and the blocking where it fails."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from cases import sampled
from freshline.planning.analysis.np_edf import blocking_tardiness, schedulable
from plain_schedulers import Tasks, apart, np_edf_tardiness, task_lists

# Few tasks of more than a few units' cost fit one track: the costs are drawn small.
light_tasks = st.lists(
    st.integers(2, 30).flatmap(lambda p: st.tuples(st.integers(1, max(1, p // 4)), st.just(p))),
    min_size=1,
    max_size=5,
)
# Up to three tasks of at most a quarter of the track, and one of a long period that is apt to block them.
short_task = st.integers(4, 20).flatmap(lambda p: st.tuples(st.integers(1, p // 4), st.just(p)))
blocked_tasks = st.tuples(
    st.lists(short_task, min_size=1, max_size=3), st.tuples(st.integers(5, 20), st.integers(80, 90))
).map(lambda drawn: [*drawn[0], drawn[1]])


def jeffay_holds(tasks: Tasks) -> bool:
    """The condition word for word, looked at just after every integer, where the right side has risen."""
    if sum(Fraction(cost, period) for cost, period in tasks) > 1:
        return False
    tasks = sorted(tasks, key=lambda task: task[1])
    for i, (cost, period) in enumerate(tasks):
        for whole in range(tasks[0][1], period):
            length = whole + Fraction(1, 1_000)
            demand = sum((-(-length // p) - 1) * e for e, p in tasks[:i])
            if length < cost + demand:
                return False
    return True


def test_a_set_that_passes_only_in_integer_time_fails() -> None:
    assert schedulable([1, 2], [2, 6]) is False
    # The longer task starts a tenth of a unit before the shorter one's release, which is then late.
    assert np_edf_tardiness([(10, 20), (20, 60)], [1, 0], tracks=1, until=60) == [9, 0]


def test_every_task_is_checked_and_not_only_the_one_of_the_longest_period() -> None:
    assert schedulable([1, 5, 1], [4, 20, 100]) is False
    assert schedulable([1, 3, 1], [4, 20, 100]) is True


def test_an_overload_fails() -> None:
    assert schedulable([2, 2], [3, 4]) is False
    assert blocking_tardiness([2, 2], [3, 4]) is None


def test_tasks_of_one_period_need_only_fit() -> None:
    assert schedulable([3, 3, 4], [10, 10, 10]) is True


def test_what_takes_too_many_points_is_left_undecided() -> None:
    assert schedulable([1, 2, 1], [4, 4, 8], points_max=1) is None


@given(light_tasks | blocked_tasks | task_lists(5, 30))
def test_one_pass_decides_as_the_condition_word_for_word(tasks: Tasks) -> None:
    assert schedulable(*apart(tasks)) == jeffay_holds(tasks)


@given(blocked_tasks)
def test_a_set_that_fails_has_a_schedule_that_misses(tasks: Tasks) -> None:
    assume(schedulable(*apart(tasks)) is False)
    in_tenths = [(10 * cost, 10 * period) for cost, period in tasks]
    misses = [
        max(np_edf_tardiness(in_tenths, [int(other != first) for other in range(len(tasks))], 1, until=900))
        for first in range(len(tasks))
    ]
    assert max(misses) > 0


@sampled(300)
@given(light_tasks | blocked_tasks, st.data())
def test_no_schedule_is_later_than_the_blocking_or_late_where_the_test_holds(
    tasks: Tasks, data: st.DataObject
) -> None:
    bounds = blocking_tardiness(*apart(tasks))
    assume(bounds is not None)
    if schedulable(*apart(tasks)):
        bounds = [0] * len(tasks)
    offsets = [data.draw(st.integers(0, period)) for _, period in tasks]
    early = [data.draw(st.integers(0, period)) for _, period in tasks]
    for earliness in (None, early):
        tardiness = np_edf_tardiness(tasks, offsets, 1, until=400, early=earliness)
        assert all(seen <= bound for seen, bound in zip(tardiness, bounds, strict=True)), (tardiness, bounds)


def test_blocking_comes_from_the_costliest_task_of_a_longer_period() -> None:
    assert blocking_tardiness([1, 4, 2, 3], [10, 100, 50, 10]) == [4, 0, 4, 4]
