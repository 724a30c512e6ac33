"""`freshline shed` as its user reads it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from freshline.base.errors import InputError
from freshline.cli.main import app

TABLE_2 = Path(__file__).parents[3] / "examples" / "shed" / "table2.json"
A = {"name": "a", "period": "2", "cost": "0.5", "weight": 5, "selectivity": "0.5", "tuples": 25000}
S1 = {"stream": "s1"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queries.json"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["shed", *map(str, arguments)])


def answered(file: Path, content: object, exit_code: int = 0) -> Any:
    file.write_text(json.dumps(content), encoding="utf-8")
    result = run(file, "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_table_2_as_operators_at_12_500_tuples_a_second() -> None:
    result = run(TABLE_2, "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["schedulable"] is False
    assert answer["utilization"] == pytest.approx(1.5, abs=1e-6)
    assert answer["refused"] == []
    assert {rule: round(outcome["weighted_error"]) for rule, outcome in answer["rules"].items()} == {
        "paper": 229_702,
        "least-overrun": 187_927,
        "least-error": 128_036,
        "best": 128_036,
    }
    assert all(outcome["schedulable"] for outcome in answer["rules"].values())


def test_the_text_has_the_errors_and_a_row_for_each_query() -> None:
    result = run(TABLE_2)
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:2] == [
        "Utilisation 1.5000. Some deadline is missed at full costs.",
        "Weighted error a second: paper 229,702, least-overrun 187,927, least-error 128,036, best 128,036.",
    ]
    assert lines[3] == "query period full cost paper least-overrun least-error best response"
    assert lines[10] == "Q7 5s 1.75s 75.7% 80.8% 15.7% 15.7% 1.35s"


def test_an_answer_says_what_is_kept_and_lost_of_each_query(file: Path) -> None:
    queries = [
        {**A, "cost": "1.5", "fixed": "0.5", "weight": 1, "tuples": 1000},
        {**A, "name": "b", "cost": 1, "weight": 9},
    ]
    outcome = answered(file, {"queries": queries})["rules"]["least-error"]
    assert outcome["weighted_error"] == pytest.approx(125)
    assert outcome["queries"] == [
        {
            "name": "a",
            "cost": 1.0,
            "keep": 0.5,
            "processing_error": 500.0,
            "output_error": 250.0,
            "response_time": 1.0,
        },
        {
            "name": "b",
            "cost": 1.0,
            "keep": 1.0,
            "processing_error": 0.0,
            "output_error": 0.0,
            "response_time": 2.0,
        },
    ]


def test_a_query_that_does_not_fit_is_refused_with_exit_code_1_and_the_others_are_shed(file: Path) -> None:
    queries = [
        {**A, "cost": "1.2", "keep_least": 1},
        {**A, "name": "b", "period": 1, "fixed": "0.5"},
        {**A, "name": "c", "cost": 1},
    ]
    answer = answered(file, {"queries": queries}, exit_code=1)
    reason = "even at the least costs, 500ms of its own, the deadline of 'a' would be missed"
    assert answer["schedulable"] is False
    assert answer["utilization"] == 1.6
    assert answer["refused"] == [{"name": "b", "reason": reason, "period_least": 1.7}]
    left = answer["rules"]["best"]["queries"]
    assert [(query["name"], query["cost"]) for query in left] == [("a", 1.2), ("c", 0.8)]
    result = run(file)
    assert result.exit_code == 1
    assert f"b is refused: {reason}; a period of 1.7 s, with a deadline as long, would fit." in result.stdout


def test_what_fits_loses_nothing(file: Path) -> None:
    answer = answered(file, {"streams": {"s1": {"rate": 5}}, "queries": [A]})
    assert answer["schedulable"] is True
    assert [outcome["weighted_error"] for outcome in answer["rules"].values()] == [0, 0, 0, 0]


def test_the_window_is_the_period_unless_it_is_given(file: Path) -> None:
    project = {"name": "a", "period": 2, "weight": 1, "operators": {"op": "project", "input": S1}}
    queries = [project, {**project, "name": "b", "window": "0.5"}]
    answer = answered(file, {"streams": {"s1": {"rate": 1000}}, "queries": queries})
    assert [query["cost"] for query in answer["rules"]["paper"]["queries"]] == [0.008, 0.002]


def deep(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = S1
    for _ in range(levels):
        tree = {"op": "project", "input": tree}
    return tree


def with_operators(tree: object) -> dict[str, Any]:
    query = {"name": "a", "period": 2, "weight": 1, "operators": tree}
    return {"streams": {"s1": {"rate": 100}}, "queries": [query]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"queries": [{**A, "colour": 1}]}, "query 1 has the unknown key 'colour'"),
        ({"queries": [A], "tracks": 1}, "the query set has the unknown key 'tracks'"),
        ({"queries": [{**A, "period": -1}]}, "the period of 'a' is -1"),
        ({"queries": [{**A, "cost": -0.5}]}, "the cost of 'a' is -0.5"),
        ({"queries": [{**A, "part": -1}]}, "the part of 'a' is -1"),
        ({"queries": [{**A, "tuples": -1}]}, "the tuples of 'a' is -1"),
        ({"queries": [{**A, "selectivity": 0}]}, "the selectivity of 'a' is 0"),
        ({"queries": [{**A, "selectivity": 1.01}]}, "the selectivity of 'a' is 1.01"),
        ({"queries": [{**A, "weight": 0}]}, "the weight of 'a' is 0"),
        ({"queries": [{**A, "cost": "much"}]}, "the cost of 'a' is 'much', not a number"),
        ({"queries": [{**A, "cost": True}]}, "the cost of 'a' is True, not a number"),
        ({"queries": [{**A, "cost": "1e300"}]}, "the cost of 'a' is 1E+300"),
        ({"queries": [{**A, "cost": 10**15}]}, "the cost of 'a' is 1000000000000000, above a hundred years"),
        ({"queries": [{**A, "deadline": 3}]}, "the deadline of 'a' is 3, beyond its period"),
        ({"queries": [{**A, "period": 0.0000001}]}, "the period of 'a' is 1E-7, finer than a microsecond"),
        ({"queries": [{**A, "fixed": 1}]}, "the fixed part of 'a' is 1, above its cost"),
        ({"queries": [{**A, "keep_least": 1.5}]}, "keep_least of 'a' is 1.5"),
        ({"queries": [{**A, "window": 1}]}, "the window of 'a' is given without operators"),
        ({"queries": [{**A, "operators": S1}]}, "both cost and operators of 'a' are given"),
        ({"queries": [A, A]}, "two queries have the name 'a'"),
        ({"queries": []}, "queries is not a list with at least one query"),
        ({}, "the query set has no queries"),
        ([], "the query set is not an object"),
        ({"queries": [{**A, "name": ""}]}, "the name of query 1 is ''"),
        ({"streams": {"s1": {"rate": -1}}, "queries": [A]}, "the rate of stream 's1' is -1"),
        ({"streams": 1, "queries": [A]}, "streams is not an object"),
        (with_operators({"stream": "s2"}), "there is no stream 's2' of 'a'"),
        (with_operators({"op": "sort", "input": S1}), "an operator of 'a' is 'sort'"),
        (with_operators({"op": "select", "input": S1}), "an operator of 'a' has no selectivity"),
        (
            with_operators({"op": "join", "selectivity": 1, "inputs": [S1]}),
            "a join of 'a' does not have two inputs",
        ),
        (with_operators(deep(60)), "the operators of 'a' are nested too deeply"),
        (with_operators(5), "an operator of 'a' is not an object"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(file: Path, content: object, sentence: str) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
    result = run(file)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"{file}: {sentence}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "the input is not JSON that can be read"),
        ("", "the input is not JSON that can be read"),
        ('{"queries": [{"name": "a", "period": NaN}]}', "NaN is not a number of a query set"),
        ('{"queries": [{"name": "a", "name": "b"}]}', "an object has the same key twice"),
        ('{"queries": ' + "[" * 100_000 + "]" * 100_000 + "}", "the input is nested too deeply"),
    ],
)
def test_a_text_that_is_no_json_is_refused_with_a_sentence(file: Path, text: str, sentence: str) -> None:
    file.write_text(text, encoding="utf-8")
    result = run(file)
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)


def test_a_file_that_is_not_there_is_refused_with_a_sentence(file: Path) -> None:
    result = run(file)
    assert isinstance(result.exception, InputError)
    assert "cannot read" in str(result.exception)
