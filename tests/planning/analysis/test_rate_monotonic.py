"""Preemptive rate-monotonic scheduling: exact response times, also where they exceed the period."""

from hypothesis import given

from freshline.planning.analysis.rate_monotonic import ResponseTime, all_within, response_times
from freshline.planning.analysis.utilization import fits
from plain_schedulers import Tasks, apart, rate_monotonic_response, task_lists


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
    responses = response_times([26, 62], [70, 100])
    assert responses == [ResponseTime(26), ResponseTime(118)]
    assert all_within(responses, [70, 100]) is False
    assert all_within(responses, [70, 118]) is True
    assert all_within(responses, [70, 117]) is False


def test_the_answers_stand_in_the_order_of_the_tasks_and_ties_go_to_the_first() -> None:
    assert [response.time for response in response_times([3, 1, 2], [20, 5, 20])] == [4, 1, 7]


def test_an_overload_from_some_priority_down_is_unbounded_from_there() -> None:
    unbounded = ResponseTime(None, "unbounded: the tasks of its priority and above need more than one track")
    responses = response_times([1, 2, 1], [2, 3, 100])
    assert responses == [ResponseTime(1), unbounded, unbounded]
    assert all_within(responses, [10**18] * 3) is False


def test_a_full_track_is_followed_to_the_end_of_its_busy_period() -> None:
    assert response_times([1, 1, 1], [2, 4, 4]) == [ResponseTime(1), ResponseTime(2), ResponseTime(4)]


def test_a_busy_period_of_ever_so_many_jobs_above_is_followed_in_a_few_steps() -> None:
    assert response_times([4, 36_000_000], [10, 108_000_000]) == [ResponseTime(4), ResponseTime(60_000_000)]
    assert response_times([1, 499_999_999], [2, 10**9]) == [ResponseTime(1), ResponseTime(999_999_998)]


# Each takes exactly a third of the track, and the busy period of the third lasts for 10^15.
THIRDS = [100_003, 100_019, 100_043], [300_009, 300_057, 300_129]


def test_a_busy_period_of_too_many_steps_is_given_up_with_a_reason() -> None:
    reason = "unknown: its busy period takes more than 1,000 steps to follow"
    responses = response_times(*THIRDS, quotients_max=3_000)
    assert responses[:2] == [ResponseTime(100_003), ResponseTime(200_022)]
    assert (responses[2].time, responses[2].reason) == (None, reason)


def test_an_unknown_response_leaves_the_verdict_open_unless_one_that_was_seen_is_too_late() -> None:
    responses = response_times(*THIRDS, quotients_max=3_000)
    # Its first job already takes 500,087.
    assert all_within(responses, [300_009, 300_057, 500_086]) is False
    assert all_within(responses, [300_009, 300_057, 10**11]) is None
    assert all_within(responses, [300_009, 200_021, 10**11]) is False


@given(task_lists(5, 12))
def test_the_verdict_is_that_of_the_scheduling_points(tasks: Tasks) -> None:
    costs, periods = apart(tasks)
    verdict = all_within(response_times(costs, periods), periods)
    assert verdict == a_scheduling_point_suffices_for_every_task(tasks)


@given(task_lists(4, 10))
def test_response_times_are_those_of_the_schedule_from_the_critical_instant(tasks: Tasks) -> None:
    costs, periods = apart(tasks)
    responses = [response.time for response in response_times(costs, periods)]
    if fits(costs, periods, 1):
        assert responses == [rate_monotonic_response(tasks, task, until=2_600) for task in range(len(tasks))]
    else:
        assert None in responses
