"""The city: every kind of work in one warehouse, planned, simulated and demonstrated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app
from freshline.definitions.load import load
from patience import PATIENCE_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "city"


def test_the_example_is_the_file_of_the_demonstration() -> None:
    packaged = Path(sys.modules["freshline"].__path__[0]) / "testing" / "city.yml"
    assert (EXAMPLE / "freshline.yml").read_text() == packaged.read_text()


def test_the_city_has_every_kind_of_work() -> None:
    city = load(EXAMPLE / "freshline.yml")
    assert city.tables.keys() == {"roads", "flow", "parking"}
    assert all((city.steps, city.queries, city.classes, city.nodes, city.cores))
    assert {pool.policy for pool in city.pools.values()} == {"aus-slack", "lrm", "rds-quota"}
    assert city.feeds["sensors"].shed is not None
    assert city.tables["parking"].discard is not None


def test_all_that_the_city_promises_is_proven() -> None:
    ran = CliRunner().invoke(app, ["plan", "-p", str(EXAMPLE), "--json"])
    record = json.loads(ran.stdout)
    assert ran.exit_code == 0
    for kind in ("tables", "outputs", "queries"):
        assert [each["holds"] for each in record[kind]] == [True] * len(record[kind])


def test_an_outage_of_the_vehicles_hurts_nothing_that_does_not_read_them() -> None:
    options = ["--for", "20m", "--outage", "vehicles:5m-8m", "--requests", "operators:0.2/s"]
    options += ["--requests", "guests:0.5/s", "--json"]
    ran = CliRunner().invoke(app, ["simulate", "-p", str(EXAMPLE), *options])
    record = json.loads(ran.stdout)
    assert [each["misses"] for each in record["outputs"] if each["name"] == "jams"] == [0]
    tables = {each["name"]: each for each in record["tables"]}
    for name in ("roads", "parking"):
        assert tables[name]["staleness_max"] <= tables[name]["staleness_bound"]
    assert all(each["misses"] == 0 for each in record["queries"])


@pytest.mark.spark
@pytest.mark.soak
def test_the_demonstration_runs_all_of_it(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "freshline",
        "demo",
        "--all",
        "--for",
        "40s",
        "--into",
        str(tmp_path / "d"),
    ]
    ran = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, timeout=3 * PATIENCE_S + 60, check=False
    )
    assert ran.returncode in (0, 1), ran.stderr  # on a busy machine a target may be exceeded
    record = json.loads(ran.stdout)
    assert {each["name"] for each in record["run"]["tables"]} == {"roads", "flow", "parking"}
    steps = {each["name"]: each for each in record["run"]["steps"]}
    assert steps["vehicles"]["rows"] > 0
    assert record["asked"].keys() == {"operators", "guests"}
