"""Preemptive rate-monotonic scheduling: exact response times, also where they exceed the period."""

from hypothesis import given
from plain_schedulers import Tasks, apart, rate_monotonic_response, task_lists

from freshline.analysis.rate_monotonic import ResponseTime, response_times, schedulable
from freshline.analysis.utilization import fits


def a_scheduling_point_suffices_for_every_task(tasks: Tasks) -> bool:
    """The test word for word: some multiple t of a period of the level, t ≤ P_i, with W_i(t) ≤ t."""
    ordered = sorted(tasks, key=lambda task: task[1])
    return all(
        any(
            sum(-(-t // p) * e for e, p in ordered[:level]) <= t
            for _, p_j in ordered[:level]
            for t in range(p_j, ordered[level - 1][1] + 1, p_j)
        )
        for level in range(1, len(ordered) + 1)
    )


def test_the_first_job_is_not_the_worst_one_where_the_response_exceeds_the_period() -> None:
    assert response_times([26, 62], [70, 100]) == [ResponseTime(26), ResponseTime(118)]
    assert not schedulable([26, 62], [70, 100])
    assert schedulable([26, 62], [70, 100], deadlines=[70, 118])
    assert not schedulable([26, 62], [70, 100], deadlines=[70, 117])


def test_the_answers_stand_in_the_order_of_the_tasks_and_ties_go_to_the_first() -> None:
    assert [response.time for response in response_times([3, 1, 2], [20, 5, 20])] == [4, 1, 7]


def test_an_overload_from_some_priority_down_is_unbounded_from_there() -> None:
    unbounded = ResponseTime(None, "unbounded: the tasks of its priority and above need more than one track")
    assert response_times([1, 2, 1], [2, 3, 100]) == [ResponseTime(1), unbounded, unbounded]


def test_a_full_track_is_followed_to_the_end_of_its_busy_period() -> None:
    assert response_times([1, 1, 1], [2, 4, 4]) == [ResponseTime(1), ResponseTime(2), ResponseTime(4)]


def test_a_busy_period_of_too_many_jobs_is_given_up_with_a_reason() -> None:
    responses = response_times([1, 499_999_999], [2, 1_000_000_000])
    assert responses == [
        ResponseTime(1),
        ResponseTime(None, "unknown: its busy period takes more than 1,000,000 jobs"),
    ]


@given(task_lists(5, 12))
def test_the_verdict_is_that_of_the_scheduling_points(tasks: Tasks) -> None:
    assert schedulable(*apart(tasks)) == a_scheduling_point_suffices_for_every_task(tasks)


@given(task_lists(4, 10))
def test_response_times_are_those_of_the_schedule_from_the_critical_instant(tasks: Tasks) -> None:
    costs, periods = apart(tasks)
    responses = [response.time for response in response_times(costs, periods)]
    if fits(costs, periods, 1):
        assert responses == [rate_monotonic_response(tasks, task, until=2_600) for task in range(len(tasks))]
    else:
        assert None in responses
