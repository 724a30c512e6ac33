"""A warehouse on two nodes, each of which is killed while it works, and comes back."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app
from freshline.service.client import ask
from freshline.storage.control.layout import StorageLayout
from freshline_lab.campaigns.kills.node_kills import (
    KEPT,
    NodesRun,
    check_nodes,
    write_file,
    write_node_project,
)
from patience import PATIENCE_S

FILES, SEED = range(1, 6), 7


@dataclass(frozen=True)
class Run:
    """What two nodes did with files that were there when they began."""

    folder: Path
    code: int
    summed_up: dict[str, Any]
    asked: dict[str, Any]  # over HTTP, while it ran
    said: str


def has_rows(run: NodesRun, node: str) -> bool:
    status = run.status(node)
    return status is not None and any(step.rows for step in status.steps)


def run_and_kill(folder: Path) -> Run:
    file = write_node_project(folder)
    for number in FILES:
        write_file(folder / "landing", number, SEED)
    output = folder / "said.txt"
    nodes = NodesRun(file, "--drain", output=output)
    try:
        nodes.wait_until(lambda: has_rows(nodes, "edge"), PATIENCE_S)
        asked = ask(StorageLayout(folder / "warehouse").control("edge").service, "GET", "/v1/status")
        nodes.kill("edge")
        nodes.wait_until(lambda: has_rows(nodes, "centre"), PATIENCE_S)
        nodes.kill("centre")
        code, summed_up = nodes.end(PATIENCE_S)
    finally:
        nodes.stop(30)
    return Run(folder, code, summed_up, asked, output.read_text(errors="replace"))


# One test, for a run of two nodes is dear, and each worker would make one of its own for a share of several.
@pytest.mark.soak
@pytest.mark.spark
def test_nodes_that_are_killed_come_back_and_all_is_there_once_summed_up_and_replayed(tmp_path: Path) -> None:
    run = run_and_kill(tmp_path)
    each_row_is_there_once(run)
    all_is_summed_up_as_one(run)
    the_first_node_answered_for_all(run)
    what_each_node_decided_can_be_replayed(run)


def each_row_is_there_once(run: Run) -> None:
    report = check_nodes(run.folder / "warehouse", FILES, SEED, kills=2)
    assert report.exact, report
    assert report.rows["readings"] == KEPT * len(FILES)
    assert report.rows["alerts"] > report.rows["near"] > 0
    assert run.said.count("was killed by signal 9: it restarts in 1 s") == 2


def all_is_summed_up_as_one(run: Run) -> None:
    steps = {step["name"]: step for step in run.summed_up["steps"]}
    assert {name: step["node"] for name, step in steps.items()} == {
        "readings": "edge",
        "high": "edge",
        "near": "edge",
        "alerts": "centre",
    }
    assert all(step["backlog"] == 0 and step["sub_deadline"] > 0 for step in steps.values())
    outputs = {output["name"]: output for output in run.summed_up["outputs"]}
    # The files are of January: all that came was too old by then.
    assert all(output["misses"] == output["rows"] for output in outputs.values())
    assert outputs["alerts"]["latency"]["p50"] <= outputs["alerts"]["latency"]["max"]
    assert run.summed_up["tables"] == []


def the_first_node_answered_for_all(run: Run) -> None:
    assert {step["node"] for step in run.asked["steps"]} >= {"edge"}
    assert not StorageLayout(run.folder / "warehouse").control("edge").service.exists(), "it has ended"


def what_each_node_decided_can_be_replayed(run: Run) -> None:
    for node in ("edge", "centre"):
        logs = sorted(StorageLayout(run.folder / "warehouse").control(node).logs.glob("*.jsonl"))
        assert len(logs) == 2
        replayed = CliRunner().invoke(app, ["replay", str(logs[-1]), "--json"])
        assert json.loads(replayed.stdout)["identical"], replayed.stdout
