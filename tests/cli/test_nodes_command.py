"""Commands on a warehouse with nodes, as far as they need no Spark."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.cli.nodes import RunningNodes
from freshline.definitions.load import load
from freshline.live.nodes.node_join import agreed_placement
from freshline.live.nodes.step_status import PlacementStatus, placement_rows
from freshline.live.run.start_up import StartUp
from freshline.live.status.status import Progress
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity, Lease, StorageInUse
from freshline_lab.campaigns.kills.node_kills import write_node_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_node_project(tmp_path / "sensors").parent


def freshline(*arguments: str | Path):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_placement_is_made_once_and_kept_in_the_storage(project: Path) -> None:
    warehouse, layout = load(project / "freshline.yml"), StorageLayout(project / "warehouse")
    made = agreed_placement(warehouse, layout)
    assert made.nodes == {"readings": "edge", "high": "edge", "near": "edge", "alerts": "centre"}
    assert agreed_placement(warehouse, layout) == made
    assert layout.placements.newest() == (1, made.record())


def test_a_step_that_is_new_is_placed_beside_those_that_stay(project: Path) -> None:
    layout = StorageLayout(project / "warehouse")
    made = agreed_placement(load(project / "freshline.yml"), layout)
    with (project / "freshline.yml").open("a", encoding="utf-8") as file:
        file.write('  more: {sql: "SELECT ts, sensor FROM alerts", deadline: 30s, cost: {startup: 300ms}}\n')
    again = agreed_placement(load(project / "freshline.yml"), layout)
    assert {name: again.nodes[name] for name in made.nodes} == made.nodes
    assert again.nodes["more"] in ("edge", "centre")
    assert layout.placements.newest()[0] == 2


def test_a_placement_is_applied_while_no_node_runs(project: Path) -> None:
    layout = StorageLayout(project / "warehouse")
    result = freshline("place", "-p", project, "--apply", "--json")
    assert result.exit_code == 0, result.output
    assert "Applied" in result.stderr
    number, record = layout.placements.newest()
    assert record is not None
    assert (number, StepPlacement.from_record(record).nodes["alerts"]) == (1, "centre")
    assert json.loads(result.stdout)["placement"]["alerts"] == "centre"
    layout.prepare(layout.control("centre"))
    lease = Lease.acquire(layout.control("centre").lease, Identity.mine("run"))
    refused = freshline("place", "-p", project, "--apply")
    assert isinstance(refused.exception, StorageInUse)
    lease.release()
    assert layout.placements.newest()[0] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--master", "local[2]"], "--master beside `nodes`"),
        (["--node", "centr"], "there is no node centr"),
    ],
)
def test_what_a_run_with_nodes_cannot_be_told_is_refused(
    project: Path, arguments: list[str], said: str
) -> None:
    result = freshline("run", "-p", project, *arguments)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_nodes_are_not_calibrated(project: Path) -> None:
    result = freshline("calibrate", "-p", project)
    assert isinstance(result.exception, InputError)
    assert "on the nodes that run them" in str(result.exception)


def test_the_status_says_that_no_node_has_run(project: Path) -> None:
    result = freshline("status", "-p", project)
    assert isinstance(result.exception, InputError)
    assert "has not run yet" in str(result.exception)


def test_steps_whose_node_is_gone_or_not_their_own_any_more_are_placed_anew(project: Path) -> None:
    file, layout = project / "freshline.yml", StorageLayout(project / "warehouse")
    made = agreed_placement(load(file), layout)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("centre", "core"), encoding="utf-8")
    renamed = agreed_placement(load(file), layout)
    assert renamed.nodes == made.nodes | {"alerts": "core"}
    pinned = text.replace("node: edge\n    deadline", "node: centre\n    deadline")
    file.write_text(pinned, encoding="utf-8")
    assert agreed_placement(load(file), layout).nodes == made.nodes | {"near": "centre"}
    assert layout.placements.newest()[0] == 3


def test_a_step_that_costs_by_rows_is_placed_though_nobody_knows_how_many_there_are(project: Path) -> None:
    file = project / "freshline.yml"
    text = file.read_text(encoding="utf-8").replace("startup: 300ms", "startup: 300ms, per_row: 1ms")
    file.write_text(text, encoding="utf-8")
    placed = agreed_placement(load(file), StorageLayout(project / "warehouse"))
    assert placed.nodes == {"readings": "edge", "high": "edge", "near": "edge", "alerts": "centre"}
    # What is shed is not read any further: twelve rows of each of two windows are.
    assert placed.costs_us == {"readings": 1_000_000, **dict.fromkeys(["high", "near", "alerts"], 324_000)}
    assert placed.assumed == ("readings",)
    assert placed.unproven.keys() == {"near", "alerts"}
    assert placed.shortcomings[-1].startswith("a second each is assumed for readings, as")


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_another_deadline_or_cost_changes_sub_deadlines_and_moves_nobody(project: Path) -> None:
    file, layout = project / "freshline.yml", StorageLayout(project / "warehouse")
    changed(file, "period: 1s", "period: 30s")
    made = agreed_placement(load(file), layout)
    assert (made.stretch, made.unproven, made.shortcomings) == (1.0, {}, [])
    changed(file, "deadline: 20s", "deadline: 10s")
    sooner = agreed_placement(load(file), layout)
    assert sooner.nodes == made.nodes
    assert all(sooner.sub_deadlines_us[name] < at_us for name, at_us in made.sub_deadlines_us.items())
    changed(file, "name: sensors", "# Sensors\nname: sensors")
    assert agreed_placement(load(file), layout) == sooner, "a comment changes nothing"
    assert layout.placements.newest()[0] == 2


def test_deadlines_that_are_stretched_are_said_with_the_outputs_that_do_not_hold(project: Path) -> None:
    file, layout = project / "freshline.yml", StorageLayout(project / "warehouse")
    changed(file, "deadline: 20s", "deadline: 600ms")
    placed = agreed_placement(load(file), layout)
    assert placed == agreed_placement(load(file), layout)
    assert placed.stretch > 1.5
    assert placed.unproven.keys() == {"near", "alerts"}
    status = PlacementStatus.of(placed)
    assert PlacementStatus.read(json.loads(json.dumps(vars(status)))) == status
    assert status.record()["stretch"] == placed.stretch
    assert [each["output"] for each in status.record()["unproven"]] == ["near", "alerts"]
    first, second, _ = placed.shortcomings
    assert first.startswith(f"deadlines are stretched {placed.stretch:.4g} times")
    assert "in the placement of this storage: `freshline plan` says" in first
    assert second.startswith(
        "output near may be late: no placement is in time for it: its deadline is stretched"
    )


def test_whoever_starts_the_nodes_says_once_what_their_placement_falls_short_of(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(project / "freshline.yml", "deadline: 20s", "deadline: 600ms")
    warehouse, layout = load(project / "freshline.yml"), StorageLayout(project / "warehouse")
    placed = agreed_placement(warehouse, layout)
    nodes = RunningNodes(warehouse, project, project / "warehouse", [], None)
    for node in ("edge", "centre"):  # as a node tells it from its start on
        control = layout.control(node)
        start_up = StartUp("sensors", "run", control.status, None, node, placement_rows(placed))
        start_up.say(Progress("starting Spark"))
        nodes.look()
    assert nodes.said == placed.shortcomings
    said = [line.lower() for line in capsys.readouterr().err.splitlines()]
    assert said == [f"{sentence}.".lower() for sentence in placed.shortcomings]
    told = freshline("status", "-p", project)
    assert "Deadlines are stretched" in told.stdout
    assert json.loads(freshline("status", "-p", project, "--json").stdout)["placement"]["stretch"] > 1.5
