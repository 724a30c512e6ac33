"""`plan` shows the placement that the next run has, and what another one would change."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.cli.main import app
from freshline.definitions.load import load, loads
from freshline.definitions.warehouse import Warehouse
from freshline.live.nodes.node_join import agreed_placement, make_placement
from freshline.planning.costs.fit import PastRun
from freshline.planning.plan.outputs import judge_outputs, plan_outputs
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.node_runs import tell_runs

TEXT = """\
name: sensors
nodes: {{edge: {{}}, centre: {{speed: {speed}}}}}
feeds:
  readings: {{path: landing, format: csv, schema: "ts timestamp, v int", timestamp: ts, period: 60s, node: edge}}
tables:
  readings: {{feed: readings{readings}}}
  high: {{sql: "SELECT ts, v FROM readings WHERE v > 9", deadline: {deadline}{high}}}
"""  # noqa: E501
UNKNOWN = TEXT.format(speed=2, deadline="3s", readings="", high="")


def plan(project: Path) -> tuple[dict[str, Any], str]:
    invoked = [CliRunner().invoke(app, ["plan", "-p", str(project), *more]) for more in (["--json"], [])]
    return json.loads(invoked[0].stdout), invoked[1].stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "freshline.yml").write_text(UNKNOWN, encoding="utf-8")
    return tmp_path


def learn(project: Path, **costs_us: int) -> None:
    """Past runs of steps on the edge, of that length each."""
    control = StorageLayout(project / "warehouse").control("edge")
    control.runs.parent.mkdir(parents=True, exist_ok=True)
    lengths = range(1, 40)
    runs = {
        name: [PastRun(number, cost_us, 10, 1_000_000, 1) for number in lengths]
        for name, cost_us in costs_us.items()
    }
    tell_runs(control.runs, runs)


def test_the_plan_is_that_of_the_placement_in_the_storage_and_says_what_another_would_change(
    project: Path,
) -> None:
    layout = StorageLayout(project / "warehouse")
    made = agreed_placement(load(project / "freshline.yml"), layout)  # with a second for each step
    assert made.assumed == ("readings", "high")
    assert made.stretch > 1
    learn(project, readings=100_000, high=100_000)
    again = agreed_placement(load(project / "freshline.yml"), layout)
    assert again == made, "the next run keeps it"
    (stretched, *_) = again.shortcomings
    assert stretched.startswith(f"deadlines are stretched {made.stretch:.4g} times (high) in the placement")
    record, said = plan(project)
    (output,) = record["outputs"]
    assert not output["holds"]
    assert {each["operator"]: each["seconds"] for each in output["sub_deadlines"]} == {
        name: until_us / 1e6 for name, until_us in made.sub_deadlines_us.items()
    }
    assert record["apply"]["sub_deadlines"] == ["readings", "high"]
    assert record["apply"]["proven"] == ["high"]
    assert "`freshline place --apply` would" in said
    assert "and prove high" in said
    assert CliRunner().invoke(app, ["place", "-p", str(project), "--apply"]).exit_code == 0
    record, said = plan(project)
    assert record["outputs"][0]["holds"]
    assert record["apply"] == {"moves": [], "sub_deadlines": [], "proven": [], "unproven": []}
    assert "`freshline place --apply` would change nothing" in said
    assert agreed_placement(load(project / "freshline.yml"), layout).shortcomings == []
    learn(project, readings=900_000, high=900_000)  # slower than when it was placed
    assert not plan(project)[0]["outputs"][0]["holds"]


def test_without_a_placement_in_the_storage_there_is_none_to_compare_with(project: Path) -> None:
    learn(project, readings=100_000, high=100_000)
    record, said = plan(project)
    assert record["outputs"][0]["holds"]
    assert record["apply"] is None
    assert "--apply" not in said


def warehouse(speed: int, deadline_ms: int, readings_ms: int, high_ms: int) -> Warehouse:
    costs = (f", cost: {{startup: {cost_ms}ms}}" for cost_ms in (readings_ms, high_ms))
    readings, high = costs
    return loads(TEXT.format(speed=speed, deadline=f"{deadline_ms}ms", readings=readings, high=high))


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(300, 9_000), st.integers(1, 2_000), st.integers(1, 2_000))
def test_a_placement_is_judged_as_when_it_was_made_if_nothing_has_changed(
    speed: int, deadline_ms: int, readings_ms: int, high_ms: int
) -> None:
    defined = warehouse(speed, deadline_ms, readings_ms, high_ms)
    made = make_placement(defined)
    planned = plan_outputs(defined)
    assert [each.holds for each in judge_outputs(defined, made).outputs] == [
        each.holds for each in planned.outputs
    ]


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1_000, 9_000), st.integers(1, 900), st.integers(1, 3))
def test_what_holds_at_stored_sub_deadlines_holds_at_the_best_ones_too(
    speed: int, deadline_ms: int, cost_ms: int, factor: int
) -> None:
    made = make_placement(warehouse(speed, deadline_ms, cost_ms, cost_ms))
    now = warehouse(speed, deadline_ms, cost_ms * factor, max(1, cost_ms // factor))
    (judged,) = judge_outputs(now, made).outputs
    (best,) = plan_outputs(now, kept=made.nodes).outputs
    assert best.holds or not judged.holds
