"""`freshline analyze`: what it reads, what it answers, and what it refuses."""

import json
from typing import Any

import pytest

from freshline.base.errors import InputError
from freshline.planning.analysis.taskset import TaskSet, analyze, parse_task_set


def task(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "cost": "5", "period": "20"} | fields


def analyzed(tracks: int, *tasks: dict[str, Any]) -> dict[str, object]:
    return analyze(parse_task_set(json.dumps({"tracks": tracks, "tasks": tasks})))


def test_numbers_and_decimal_strings_become_integers_of_one_unit() -> None:
    text = """{"tracks": 2, "tasks": [
        {"name": "a", "cost": 0.1, "period": "20.00", "deadline": 19.25, "phase": "0"},
        {"name": "b", "cost": "5", "period": 1e2}]}"""
    assert parse_task_set(text) == TaskSet(
        tracks=2,
        names=("a", "b"),
        costs=(10, 500),
        periods=(2_000, 10_000),
        deadlines=(1_925, 10_000),
        decimals=2,
    )


def test_one_track_gets_every_analysis() -> None:
    answer = analyzed(1, task("a", cost=26, period=70), task("b", cost=62, period=100))
    assert answer == {
        "utilization": 0.9914285714285714,
        "rm": {"schedulable": False, "response_times": [26.0, 118.0]},
        "np_edf_one_track": {"schedulable": False},
        "np_gedf": {"x": 36.0, "tardiness": [62.0, 98.0]},
        "gedf": {"devi_anderson": [0.0, 0.0], "compliant_vector": [69.4, 99.4]},
    }


def test_several_tracks_get_no_analysis_that_is_for_one() -> None:
    answer = analyzed(
        2,
        task("a", cost="0.1", period="0.2"),
        task("b", cost=0.1, period=0.2),
        task("c", cost=0.1, period=0.2),
    )
    assert answer == {
        "utilization": 1.5,
        "rm": None,
        "np_edf_one_track": None,
        "np_gedf": {"x": 0.1 / 1.5, "tardiness": [0.25 / 1.5] * 3},
        "gedf": {"devi_anderson": [0.1] * 3, "compliant_vector": [0.23333333333333334] * 3},
        "reasons": {"rm": "for one track only", "np_edf_one_track": "for one track only"},
    }


def test_deadlines_that_are_not_the_periods_leave_only_rate_monotonic() -> None:
    answer = analyzed(1, task("a", cost=26, period=70), task("b", cost=62, period=100, deadline=118))
    assert answer == {
        "utilization": 0.9914285714285714,
        "rm": {"schedulable": True, "response_times": [26.0, 118.0]},
        "np_edf_one_track": None,
        "np_gedf": None,
        "gedf": None,
        "reasons": dict.fromkeys(
            ("np_edf_one_track", "np_gedf", "gedf"),
            "known only if each deadline is the period, and that of 'b' is not",
        ),
    }


def test_an_overload_has_no_tardiness_and_its_response_times_say_why() -> None:
    assert analyzed(1, task("a", cost=15), task("b", cost=15, period=30)) == {
        "utilization": 1.25,
        "rm": {
            "schedulable": False,
            "response_times": [15.0, None],
            "reasons": [None, "unbounded: the tasks of its priority and above need more than one track"],
        },
        "np_edf_one_track": {"schedulable": False},
        "np_gedf": None,
        "gedf": None,
        "reasons": dict.fromkeys(("np_gedf", "gedf"), "unbounded: the tasks need more than one track"),
    }


def test_a_cost_above_its_period_is_a_verdict_and_no_error() -> None:
    answer = analyzed(3, task("a", cost=30, period=20))
    assert answer == {
        "utilization": 1.5,
        "rm": None,
        "np_edf_one_track": None,
        "np_gedf": None,
        "gedf": None,
        "reasons": {
            "rm": "for one track only",
            "np_edf_one_track": "for one track only",
            "np_gedf": "unbounded: the cost of 'a' is above its period",
            "gedf": "unbounded: the cost of 'a' is above its period",
        },
    }


def test_many_short_jobs_before_a_long_one_are_no_reason_to_give_up() -> None:
    answer = analyzed(1, task("a", cost="0.0004", period="0.001"), task("b", cost=3600, period=10800))
    assert answer["rm"] == {"schedulable": True, "response_times": [0.0004, 6000.0]}


def test_a_response_that_is_not_found_leaves_schedulable_open() -> None:
    answer = analyzed(
        1,
        task("a", cost=100_003, period=300_009),
        task("b", cost=100_019, period=300_057),
        task("c", cost=100_043, period=300_129, deadline=10**11),
    )
    assert answer["rm"] == {
        "schedulable": None,
        "response_times": [100_003.0, 200_022.0, None],
        "reasons": [None, None, "unknown: its busy period takes more than 1,000,000 steps to follow"],
    }


def test_a_phase_changes_nothing() -> None:
    assert analyzed(1, task("a", phase="7.5"), task("b")) == analyzed(1, task("a"), task("b"))


DIGITS = "Write a decimal number of at most 18 digits on either side of the point"


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], 'tasks is not a list with at least one task. Write "tasks": [{"name": …}, …].'),
        ({"a": 1}, 'tasks is not a list with at least one task. Write "tasks": [{"name": …}, …].'),
        (
            ["a"],
            "task 1 is not an object. Write an object with the keys name, cost, period, deadline, phase.",
        ),
        ([task(prio=1)], "task 1 has the unknown key 'prio'. Use only name, cost, period, deadline, phase."),
        ([{"name": "a", "cost": 1}], "task 1 has no period. Give it a period."),
        ([task(), task()], "two tasks have the name 'a'. Give each task a name of its own."),
        ([task(name="")], "the name of task 1 is ''. Give it a text that is not empty."),
        ([task(name=7)], "the name of task 1 is 7. Give it a text that is not empty."),
        ([task(cost=0)], "the cost of 'a' is 0. Give a number above zero."),
        ([task(period="-3")], "the period of 'a' is '-3'. Give a number above zero."),
        ([task(deadline=0)], "the deadline of 'a' is 0. Give a number above zero."),
        ([task(phase=-1)], "the phase of 'a' is negative. Give a phase of 0 or more."),
        ([task(cost="five")], f"the cost of 'a' is 'five', not a number. {DIGITS}."),
        ([task(cost="NaN")], f"the cost of 'a' is 'NaN', not a number. {DIGITS}."),
        ([task(cost="1_0")], f"the cost of 'a' is '1_0', not a number. {DIGITS}."),
        ([task(cost=True)], f"the cost of 'a' is True, not a number. {DIGITS}."),
        ([task(deadline=None)], f"the deadline of 'a' is None, not a number. {DIGITS}."),
        ([task(cost="1e999999")], f"the cost of 'a' is 1E+999999. {DIGITS}."),
        ([task(cost="1e-999999")], f"the cost of 'a' is 1E-999999. {DIGITS}."),
        ([task(cost="1e" + "9" * 30)], f"the cost of 'a' is '1e{'9' * 30}'. {DIGITS}."),
        ([task(cost=10**18)], f"the cost of 'a' is 1{'0' * 18}. {DIGITS}."),
        ([task(cost="0." + "1" * 19)], f"the cost of 'a' is 0.{'1' * 19}. {DIGITS}."),
    ],
)
def test_a_wrong_task_is_refused_with_a_sentence(tasks: object, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_task_set(json.dumps({"tracks": 1, "tasks": tasks}))
    assert str(refused.value) == message


@pytest.mark.parametrize("tracks", ["0", "-1", "1.0", '"2"', "true", "null"])
def test_tracks_are_a_whole_number_from_1_up(tracks: str) -> None:
    with pytest.raises(
        InputError, match=r"^tracks is .*\. Give the number of tracks, a whole number from 1 up\.$"
    ):
        parse_task_set(f'{{"tracks": {tracks}, "tasks": [{{"name": "a", "cost": 1, "period": 2}}]}}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the input is not JSON that can be read: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "the task set is not an object"),
        ('{"tasks": []}', "the task set has no tracks"),
        ('{"tracks": 1, "tasks": [], "tracks": 2}', "an object has the same key twice"),
        ('{"tracks": 1, "tasks": [], "policy": "edf"}', "the task set has the unknown key 'policy'"),
        (
            '{"tracks": 1, "tasks": [{"name": "a", "cost": NaN, "period": 1}]}',
            "NaN is not a number of a task set",
        ),
        (
            '{"tracks": 1, "tasks": [{"name": "a", "cost": 1e999999, "period": 1}]}',
            "the cost of 'a' is 1E+999999",
        ),
        ("[" * 100_000, "the input is nested too deeply to be a task set"),
        ('{"tracks": 1e' + "9" * 40 + "}", "a number's exponent is too large"),
    ],
)
def test_a_wrong_text_is_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_task_set(text)
    assert refused.value.what == message


def test_an_integer_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InputError, match="the input is not JSON that can be read: Exceeds the limit"):
        parse_task_set('{"tracks": ' + "9" * 5_000 + "}")
