"""The exact test of continuous queries on one track."""

from hypothesis import given

from freshline.planning.analysis.levels import (
    QueryLoad,
    by_priority,
    first_late,
    holds,
    is_schedulable,
    response_us,
)
from freshline.planning.analysis.rate_monotonic import all_within, response_times
from plain_schedulers import Tasks, apart, task_lists
from query_loads import load, loads, overrun, points, worst_by_simulation


def in_order(queries: list[QueryLoad]) -> list[QueryLoad]:
    return [queries[place] for place in by_priority(queries)]


def test_a_level_may_hold_at_an_earlier_point_than_its_deadline() -> None:
    queries = [load("a", 4, 2), load("b", 5, 2)]
    assert overrun(queries, [2, 2], 1, 5) == 1
    assert is_schedulable(queries)
    assert response_us(queries) == [2, 4]


def test_shorter_deadlines_go_first_and_ties_by_the_order_of_definition() -> None:
    queries = [load("a", 9, 1), load("b", 9, 1, deadline=4), load("c", 5, 1), load("d", 5, 1)]
    assert by_priority(queries) == [1, 2, 3, 0]
    assert response_us(queries) == [4, 1, 2, 3]


def test_a_level_waits_for_the_longest_part_below_it_but_the_lowest_for_none() -> None:
    queries = [load("a", 10, 2), load("b", 20, 4, part=3), load("c", 40, 5, part=4)]
    assert response_us(queries) == [6, 10, 13]


def test_a_response_above_the_period_is_none_and_one_above_the_deadline_is_said() -> None:
    queries = [load("a", 10, 6), load("b", 12, 5), load("c", 20, 3, deadline=11)]
    assert response_us(queries) == [6, None, 9]
    assert response_us([load("a", 10, 6), load("b", 40, 5, deadline=12)]) == [6, 17]
    assert first_late(queries) == 1


def test_no_queries_are_schedulable() -> None:
    assert is_schedulable([])
    assert response_us([]) == []


@given(loads())
def test_the_test_over_the_points_and_the_response_times_agree(queries: list[QueryLoad]) -> None:
    ordered = in_order(queries)
    costs = [query.cost_us for query in ordered]
    verdicts = [
        any(overrun(ordered, costs, level, instant) <= 0 for instant in points(ordered, level))
        for level in range(len(ordered))
    ]
    assert is_schedulable(ordered) == all(verdicts)
    assert [holds(ordered, level, costs) for level in range(len(ordered))] == verdicts
    responses = response_us(ordered)
    for query, verdict, response in zip(ordered, verdicts, responses, strict=True):
        assert verdict == (response is not None and response <= query.deadline_us)


@given(loads(size_max=4, period_max=12))
def test_the_response_times_are_those_of_a_simulation(queries: list[QueryLoad]) -> None:
    ordered = in_order(queries)
    costs = [query.cost_us for query in ordered]
    assert response_us(ordered) == [
        worst_by_simulation(ordered, costs, level, query.period_us) for level, query in enumerate(ordered)
    ]


@given(task_lists(6, 30))
def test_with_deadlines_at_the_periods_and_nothing_to_wait_for_it_is_the_rate_monotonic_test(
    tasks: Tasks,
) -> None:
    queries = [load(str(number), period, cost) for number, (cost, period) in enumerate(tasks)]
    costs, periods = apart(tasks)
    assert is_schedulable(queries) is all_within(response_times(costs, periods), periods)


@given(loads())
def test_who_fits_still_does_if_others_are_left_out(queries: list[QueryLoad]) -> None:
    if is_schedulable(queries):
        assert all(is_schedulable(queries[:place] + queries[place + 1 :]) for place in range(len(queries)))
