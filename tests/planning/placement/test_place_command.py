"""`freshline place` as its user reads it."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from cases import sampled
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.planning.placement.plan_file import parse_plan
from placement_cases import COLLISION_FILE

NODES = [{"name": "a"}, {"name": "b"}]
SOURCE = {"stream": "s", "node": "a"}
X = {"name": "x", "inputs": ["s"], "cost": "0.5"}
Y = {"name": "y", "inputs": ["x"], "cost": 1, "nodes": ["b"]}
OUTPUT = {"stream": "y", "deadline": 3}
PLAN = {"nodes": NODES, "sources": [SOURCE], "operators": [X, Y], "outputs": [OUTPUT]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["place", *map(str, arguments)])


def answered(file: Path, content: object, *options: str, exit_code: int = 0) -> Any:
    file.write_text(json.dumps(content), encoding="utf-8")
    result = run(file, "--json", *options)
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_the_answer_is_all_there_is_to_know(file: Path) -> None:
    answer = answered(file, PLAN)
    assert answer.pop("seconds") >= 0
    assert answer == {
        "status": "optimal",
        "objective": 0.0,
        "bound": 0.0,
        "gap": 0.0,
        "placement": {"x": "a", "y": "b"},
        "routes": [{"stream": "x", "from": "a", "to": "b"}],
        "sub_deadlines": [
            {"output": "y", "operator": "x", "seconds": 1.0},
            {"output": "y", "operator": "y", "seconds": 2.0},
        ],
        "tasks": [
            {"node": "a", "operators": ["x"], "cost": 0.5, "sub_deadline": 1.0},
            {"node": "b", "operators": ["y"], "cost": 1.0, "sub_deadline": 2.0},
        ],
        "nodes": [{"name": "a", "load": 0.5, "slack": 0.5}, {"name": "b", "load": 1.0, "slack": 1.0}],
        "infeasible": None,
    }


def test_what_is_not_in_time_says_what_would_be(file: Path) -> None:
    answer = answered(file, PLAN | {"outputs": [{"stream": "y", "deadline": 1}]}, exit_code=1)
    answer.pop("seconds")
    assert answer == {
        "status": "infeasible",
        **dict.fromkeys(("objective", "bound", "gap")),
        "placement": {},
        **{key: [] for key in ("routes", "sub_deadlines", "tasks", "nodes")},
        "infeasible": {
            "reason": "every placement needs deadlines at least 1.5 times as long",
            "outputs": ["y"],
            "nodes": ["a", "b"],
            "stretch": 1.5,
            "placement": {"x": "a", "y": "b"},
            "routes": [{"stream": "x", "from": "a", "to": "b"}],
            "sub_deadlines": [
                {"output": "y", "operator": "x", "seconds": 0.5},
                {"output": "y", "operator": "y", "seconds": 1.0},
            ],
        },
    }


def test_by_traffic_and_load_the_placement_is_there_even_if_it_is_late(file: Path) -> None:
    late = PLAN | {"outputs": [{"stream": "y", "deadline": 1}]}
    answer = answered(file, late, "--method", "sqpr", exit_code=1)
    assert answer["placement"] == {"x": "b", "y": "b"} or answer["placement"] == {"x": "a", "y": "b"}
    assert answer["status"] == "infeasible"
    assert [node["slack"] for node in answer["nodes"]] == [None, None]


def test_the_text_has_a_row_for_each_operator_and_node() -> None:
    result = run(COLLISION_FILE)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "Every output is in time. Objective 0, the least there is."
    assert "O3 node2 15ms 30ms" in lines
    assert "O6 node2 100ms 1.5s" in lines
    assert lines[-2:] == ["node1 25ms 5ms", "node2 335ms 15ms"]


def test_the_text_says_what_binds(file: Path) -> None:
    file.write_text(json.dumps(PLAN | {"outputs": [{"stream": "y", "deadline": 1}]}), encoding="utf-8")
    result = run(file)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:3] == [
        "No placement is in time: every placement needs deadlines at least 1.5 times as long.",
        "With deadlines 1.5 times as long the placement below is in time.",
        "Outputs that bind: y. Nodes that bind: a, b.",
    ]


def test_nodes_and_operators_are_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "made" / "nodes.png"
    assert run(COLLISION_FILE, "--plot", picture).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def with_operator(**keys: object) -> dict[str, object]:
    return PLAN | {"operators": [X | keys, Y]}


NOWHERE = "over the links none of the nodes of 'y' can get its inputs and pass on its result"
UNREAD = X | {"name": "z", "inputs": ["y"], "nodes": ["a"]}
BAD = [
    ([], "the plan is not an object"),
    (PLAN | {"tables": []}, "the plan has the unknown key 'tables'"),
    ({"nodes": NODES}, "the plan has no sources"),
    (PLAN | {"nodes": []}, "nodes is not a list with at least one entry"),
    (PLAN | {"nodes": [*NODES, {"name": "a"}]}, "two nodes have the name 'a'"),
    (PLAN | {"nodes": [{"name": "a", "colour": 1}]}, "node 1 has the unknown key 'colour'"),
    (PLAN | {"nodes": [{"name": ""}]}, "the name of node 1 is ''"),
    (PLAN | {"nodes": [{"name": "a", "speed": 0}]}, "the speed of 'a' is 0"),
    (PLAN | {"nodes": [{"name": "a", "blocking": -1}]}, "the blocking of 'a' is -1"),
    (PLAN | {"links": [["a"]]}, "link 1 is ['a']"),
    (PLAN | {"links": [["a", "c"]]}, "link 1 names the unknown node 'c'"),
    (PLAN | {"links": [["a", "a"]]}, "link 1 is from 'a' to itself"),
    (PLAN | {"links": [["a", "b"], ["a", "b"]]}, "two links have the ends 'a → b'"),
    (PLAN | {"sources": [SOURCE, SOURCE]}, "two sources have the stream and node 's at a'"),
    (PLAN | {"sources": [SOURCE | {"node": "c"}]}, "source 's' names the unknown node 'c'"),
    (PLAN | {"sources": [SOURCE, {**SOURCE, "node": "b", "rate": 2}]}, "source 's' has two rates"),
    (with_operator(cost=0), "the cost of operator 'x' is 0"),
    (with_operator(cost="-0.5"), "the cost of operator 'x' is '-0.5'"),
    (with_operator(cost=True), "the cost of operator 'x' is True, not a number"),
    (with_operator(period=1), "operator 1 has the unknown key 'period'"),
    (with_operator(nodes=[]), "no node may run operator 'x'"),
    (with_operator(nodes=["c"]), "operator 'x' names the unknown node 'c'"),
    (with_operator(nodes=["a", "a"]), "the nodes of operator 'x' have a name twice"),
    (with_operator(nodes="a"), "the nodes of operator 'x' are not a list with at least one name"),
    (with_operator(inputs=[]), "the inputs of operator 'x' are not a list with at least one name"),
    (with_operator(inputs=["t"]), "operator 'x' reads the stream 't', which nothing makes"),
    (with_operator(outputs=["x", "y"]), "operator 'y' makes the stream 'y', as x does"),
    (with_operator(outputs=["x", "s"]), "operator 'x' makes the stream 's', as a source does"),
    (with_operator(selectivity=-1), "the selectivity of operator 'x' is -1"),
    (with_operator(inputs=["y"]), "the operators x → y → x read one another in a cycle"),
    (with_operator(inputs=["s", "x"]), "the operators x → x read one another in a cycle"),
    (PLAN | {"operators": [X, X]}, "two operators have the name 'x'"),
    (PLAN | {"outputs": [OUTPUT, OUTPUT]}, "two outputs have the stream 'y'"),
    (PLAN | {"outputs": [OUTPUT | {"stream": "z"}]}, "no operator makes the output 'z'"),
    (PLAN | {"outputs": [OUTPUT | {"stream": "s"}]}, "no operator makes the output 's'"),
    (PLAN | {"outputs": [OUTPUT | {"deadline": 0}]}, "the deadline of output 'y' is 0"),
    (PLAN | {"outputs": [OUTPUT | {"node": "c"}]}, "output 'y' names the unknown node 'c'"),
    (PLAN | {"links": []}, f"output 'y' has no path: {NOWHERE}"),
    (
        PLAN | {"links": [["a", "b"]], "outputs": [OUTPUT | {"node": "a"}]},
        f"output 'y' has no path: {NOWHERE}",
    ),
    (
        PLAN | {"links": [["a", "b"]], "operators": [X, Y, UNREAD]},
        f"no node may run operator 'z': {NOWHERE.replace('y', 'z', 1)}",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), BAD)
def test_bad_input_is_told_in_one_sentence(file: Path, content: object, sentence: str) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")
    error = run(file).exception
    assert isinstance(error, InputError)
    assert str(error).startswith(f"{file}: {sentence}. ")


@pytest.mark.parametrize("text", ["", "{", "[1, 2", '{"nodes": NaN}', '{"a": 1, "a": 2}', "[" * 100_000])
def test_what_is_no_json_is_told(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert isinstance(run(file).exception, InputError)


def test_a_limit_is_a_duration(file: Path) -> None:
    file.write_text(json.dumps(PLAN), encoding="utf-8")
    assert run(file, "--limit", "5s").exit_code == 0
    assert isinstance(run(file, "--limit", "0").exception, InputError)


PIECES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["a", "b", "s", "x", "y", "1e400", "-1", "0.5", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "nodes", "cost", "inputs", "stream"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data())
@sampled(150)
def test_whatever_stands_in_a_plan_is_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(json.dumps(PLAN))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from([*PLAN, "links"]))
        entries = content.get(key)
        if (
            isinstance(entries, list)
            and entries
            and isinstance(entries[0], dict)
            and data.draw(st.booleans())
        ):
            field = data.draw(st.sampled_from([*entries[0], "speed", "rate", "selectivity", "node", "nodes"]))
            entries[0][field] = data.draw(PIECES)
        else:
            content[key] = data.draw(PIECES)
    with suppress(InputError):
        parse_plan(json.dumps(content))
