"""Tables that are computed from steps: their bounds in a plan, in a simulation and in a run."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app
from freshline.definitions.load import load
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.recovery.modes import recovery_rule
from freshline.kernel.tables.task import tables_of
from freshline.live.nodes.node_join import make_placement
from freshline.live.run.learned_plan import LearnedPlan
from freshline.storage.control.history import History

TEXT = """
name: both
nodes: {here: {}}
pools: {default: {tracks: 1, policy: POLICY, node: here}}
feeds: {speeds: {period: 10s, burst: 20}}
tables:
  readings: {feed: speeds, cost: {startup: 100ms}}
  alerts: {sources: [readings], deadline: 5s, cost: {startup: 100ms}}
  totals: {sources: [readings], period: 20s, cost: {startup: 1s}, target_lag: 2m}
  days: {sources: [totals, alerts], period: 40s, cost: {startup: 1s}, target_lag: 5m}
"""


@pytest.fixture(params=["edf", "fifo", "aus", "aus-slack"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "freshline.yml"
    path.write_text(TEXT.replace("POLICY", request.param))
    return path


def plan_of(project: Path) -> dict[str, dict[str, object]]:
    ran = CliRunner().invoke(app, ["plan", "-p", str(project), "--json"])
    return {table["name"]: table for table in json.loads(ran.stdout)["tables"]}


def test_what_is_planned_can_be_simulated_and_replayed(project: Path, tmp_path: Path) -> None:
    for conditions in ([], ["--outage", "speeds:5m-10m"], ["--fail", "readings:0.1", "--crash", "20m:1m"]):
        log = tmp_path / "run.jsonl"
        words = ["simulate", "-p", str(project), "--for", "1h", "--log", str(log), *conditions]
        ran = CliRunner().invoke(app, words)
        assert ran.exit_code in (0, 1), ran.exception
        assert "A proven bound was exceeded" not in ran.stderr
        replayed = CliRunner().invoke(app, ["replay", str(log)])
        assert replayed.exit_code == 0, replayed.output


def test_a_run_has_the_bounds_that_plan_proves(project: Path, tmp_path: Path) -> None:
    warehouse, planned = load(project), plan_of(project)
    with History(tmp_path / "history.sqlite") as history:
        plan = LearnedPlan(warehouse, history, make_placement(warehouse)).plan
    bounds_us = {table.name: table.staleness_bound_us for table in plan.tables}
    assert {name: us and us / 1_000_000 for name, us in bounds_us.items()} == {
        name: table["staleness_bound"] for name, table in planned.items()
    }
    if "fifo" not in project.read_text():
        assert None not in bounds_us.values()
    kernel = assemble(plan, 0)
    for task in tables_of(kernel):
        rule = recovery_rule(task)
        if rule is not None:
            assert None not in rule.terms.source_bounds_us


def test_without_a_proof_of_its_steps_a_table_has_no_bound(project: Path) -> None:
    project.write_text(project.read_text().replace("deadline: 5s", "deadline: 100ms"))
    assert [table["staleness_bound"] for table in plan_of(project).values()] == [None, None]
