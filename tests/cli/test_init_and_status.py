"""`freshline init` and `freshline status` as a user meets them."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.cli.init import init
from freshline.cli.main import app as freshline_app
from freshline.cli.status import status
from freshline.definitions.load import load
from freshline.live.queries.query_status import QueryStatus
from freshline.live.requests.class_status import ClassStatus
from freshline.live.status.status import PoolStatus, Progress, WarehouseStatus
from freshline.live.tables.table_status import TableStatus
from freshline.testing.network import NETWORK

S = 1_000_000

app = typer.Typer()
app.command()(init)
app.command()(status)


def freshline(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert freshline("init", tmp_path / "network").exit_code == 0
    return tmp_path / "network"


def test_init_writes_a_project_that_plan_accepts(project: Path):
    assert sorted(file.name for file in project.iterdir()) == ["README.md", "freshline.yml"]
    result = CliRunner().invoke(freshline_app, ["plan", "-p", str(project), "--json"])
    assert result.exit_code == 0, result.output
    assert [table["name"] for table in json.loads(result.stdout)["tables"]] == [
        "packets",
        "alerts",
        "traffic",
        "suspects",
    ]


def test_init_says_as_json_what_it_wrote(tmp_path: Path):
    result = freshline("init", tmp_path / "network", "--json")
    assert json.loads(result.stdout) == {
        "folder": str(tmp_path / "network"),
        "files": ["freshline.yml", "README.md"],
    }
    assert all((tmp_path / "network" / name).is_file() for name in ("freshline.yml", "README.md"))


def test_the_project_has_the_feeds_that_its_readme_generates(project: Path):
    known = {spec.name: spec for spec in NETWORK}
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) == 5
    for feed in load(project / "freshline.yml").feeds.values():
        landing = feed.landing
        assert (landing.format, landing.schema) == (known[feed.name].format, known[feed.name].schema)
        assert landing.path == f"landing/{feed.name}"
        assert f"--feed {feed.name}={feed.period_us // S}s" in readme


def test_init_leaves_a_file_that_is_there_alone(project: Path):
    (project / "freshline.yml").unlink()
    (project / "README.md").write_text("mine", encoding="utf-8")
    result = freshline("init", project)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"there is a {project / 'README.md'} already.")
    assert [(file.name, file.read_text(encoding="utf-8")) for file in project.iterdir()] == [
        ("README.md", "mine")
    ]


def test_init_where_nothing_can_be_written_is_an_input_error(project: Path):
    result = freshline("init", project / "README.md" / "deeper")
    assert isinstance(result.exception, InputError)
    assert "cannot write into" in str(result.exception)


def running(project: Path, **changed: object) -> WarehouseStatus:
    """Writes the status of a runner (this process) whose one loaded table was fresh 4 s ago."""
    now_us = time.time_ns() // 1_000
    packets = TableStatus(
        name="packets",
        state="HEALTHY",
        freshness_us=now_us - 4 * S,
        trailing_edge_us=now_us - 3 * S,
        staleness_bound_us=12 * S,
        target_lag_us=60 * S,
        period_us=3 * S,
        backlog=1,
        loaded_rows=600,
        late_rows=0,
        jobs=3,
        message=None,
        staleness_max_us=7 * S,
        lag_max_us=3 * S,
        running_on=None,
    )
    alerts = dataclasses.replace(packets, name="alerts", state="EMPTY", freshness_us=None, backlog=0)
    written = WarehouseStatus(
        name="network",
        run_id="run-1",
        host=socket.gethostname(),
        pid=os.getpid(),
        at_us=now_us,
        started_us=now_us - 60 * S,
        tracks=(),
        broken_assumptions=(),
        quarantined=0,
        pools=(PoolStatus("updates", "aus", "edf"),),
    )
    written = written.changed(**{"tables": (packets, alerts), **changed})
    written.write(project / "warehouse" / "_freshline" / "status.json")
    return written


def dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_status_prints_the_documented_json_as_of_now(project: Path):
    written = running(project)
    result = freshline("status", "-p", project / "freshline.yml", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    record = json.loads(result.stdout)
    staleness = record["tables"][0].pop("staleness")
    assert 4 <= staleness < 10
    freshness = datetime.fromisoformat(record["tables"][0].pop("freshness"))
    assert (freshness, freshness.utcoffset()) == (utc(written.tables[0].freshness_us), timedelta(0))
    assert record == {
        "starting": None,
        "pools": [{"name": "updates", "policy": "aus", "behaves_as": "edf"}],
        "tables": [
            {
                "name": "packets",
                "state": "HEALTHY",
                "lag": 1.0,
                "staleness_bound": 12.0,
                "target_lag": 60.0,
                "backlog": 1,
                "unloaded": None,
                "recovery_due": None,
                "recovery_estimated": False,
                "rows_shed": 0,
                "files_discarded": 0,
                "late_warning": None,
            },
            {
                "name": "alerts",
                "state": "EMPTY",
                "freshness": None,
                "lag": None,
                "staleness": None,
                "staleness_bound": 12.0,
                "target_lag": 60.0,
                "backlog": 0,
                "unloaded": None,
                "recovery_due": None,
                "recovery_estimated": False,
                "rows_shed": 0,
                "files_discarded": 0,
                "late_warning": None,
            },
        ],
        "queries": [],
        "classes": [],
        "outputs": [],
        "steps": [],
        "placement": None,
    }


def test_status_tells_of_classes(project: Path):
    figures = {
        "ate": 0.25,
        "admitted": 0.5,
        "quota": 0.2,
        "waiting": 3,
        "answered": 12_345,
        "error_mean": 0.21,
    }
    counts = {"rejected": 7, "unanswered": 2, "withdrawn": 1, "state": "SETTLING"}
    operators = ClassStatus("operators", "asked", 0.2, **figures, **counts)
    running(project, classes=(operators, ClassStatus("guests", "asked", 0.5)))
    record = json.loads(freshline("status", "-p", project, "--json").stdout)
    assert record["classes"][0] == {"class": "operators", "pool": "asked", "error": 0.2, **figures, **counts}
    shown = " ".join(freshline("status", "-p", project).stdout.split())
    assert "operators SETTLING 25% 20% 50% 20% 3 12.3k 21% 7 2" in shown
    assert "guests IDLE - 50% - - 0 0 - 0 0" in shown


def test_status_tells_of_queries(project: Path):
    query = QueryStatus(
        "busiest",
        "RUNNING",
        "answers",
        stride_us=2_000_000,
        deadline_us=1_500_000,
        budget_us=400_000,
        iterations=12_345,
        misses=2,
        missed_because="2 failed",
        looks=3,
        keep=0.5,
        keep_mean=0.75,
        finished_us=1_700_000_000_500_000,
        message="[CAST_INVALID_INPUT] no number",
    )
    refused = QueryStatus(
        "huge", "REFUSED", "answers", message="even at the least costs", period_least_us=3_000
    )
    running(project, queries=(query, refused))
    record = json.loads(freshline("status", "-p", project, "--json").stdout)
    assert record["queries"][0] == {
        "name": "busiest",
        "state": "RUNNING",
        "pool": "answers",
        "stride": 2.0,
        "deadline": 1.5,
        "budget": 0.4,
        "iterations": 12_345,
        "misses": 2,
        "missed_because": "2 failed",
        "looks": 3,
        "keep": 0.5,
        "keep_mean": 0.75,
        "finished": 1_700_000_000.5,
        "last_error": "[CAST_INVALID_INPUT] no number",
        "period_least": None,
        "held_back_by": None,
        "behind": None,
    }
    assert record["queries"][1]["period_least"] == 0.003
    shown = freshline("status", "-p", project).stdout
    assert "busiest RUNNING 2s 1.5s 400ms 12.3k 2 50% 75%" in " ".join(shown.split())
    assert "busiest: [CAST_INVALID_INPUT] no number" in shown
    assert "busiest: 2 failed" in shown
    assert "huge: even at the least costs" in shown
    running(project, queries=(query, refused), pid=dead_process())
    ended = json.loads(freshline("status", "-p", project, "--json").stdout)["queries"]
    assert [each["state"] for each in ended] == ["ENDED", "REFUSED"]
    assert "busiest ENDED 2s 1.5s" in " ".join(freshline("status", "-p", project).stdout.split())


def test_status_shows_the_running_warehouse(project: Path):
    running(project)
    result = freshline("status", "-p", project)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"up 1m, process {os.getpid()}" in result.stdout
    assert "packets HEALTHY" in result.stdout


def test_status_exits_with_1_where_a_table_is_staler_than_its_target(project: Path):
    tables = running(project).tables
    running(project, tables=(dataclasses.replace(tables[0], target_lag_us=3 * S), tables[1]))
    assert freshline("status", "-p", project).exit_code == 1


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("gone", ["dead", "silent"])
def test_status_says_when_no_runner_is_running_and_how_old_its_figures_are(
    gone: str, as_json: bool, project: Path
):
    now_us = time.time_ns() // 1_000
    changed = {"pid": dead_process()} if gone == "dead" else {"at_us": now_us - 125 * S}
    written = running(project, **changed)
    # Above the target by now, but not when it was last seen.
    fresh = dataclasses.replace(written.tables[0], freshness_us=written.at_us - 60 * S)
    running(project, **{**changed, "at_us": written.at_us, "tables": (fresh,)})
    result = freshline("status", "-p", project, *(["--json"] if as_json else []))
    assert result.exit_code == 0
    assert "No runner is running: these figures are " in result.stderr
    assert gone == "dead" or "2m 5s old" in result.stderr
    if as_json:
        assert json.loads(result.stdout)["tables"][0]["staleness"] == 60.0
    else:
        assert "network is not running: figures of" in result.stdout


def starting(project: Path, **changed: object) -> None:
    """A run that starts, and has not written for a while: so it is with what takes long."""
    opening = {"tables": (), "pools": (), "starting": Progress("opening tables", 12, 42)}
    long_ago_us = time.time_ns() // 1_000 - 125 * S
    running(project, **{**opening, "at_us": long_ago_us, **changed})


def test_status_says_how_far_a_start_is(project: Path):
    starting(project)
    result = freshline("status", "-p", project)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Starting: opening tables, 12 of 42." in result.stdout
    assert "freshness" not in result.stdout  # nothing is known of the tables
    record = json.loads(freshline("status", "-p", project, "--json").stdout)
    assert record == {
        "starting": {"doing": "opening tables", "done": 12, "of": 42},
        "pools": [],
        "tables": [],
        "queries": [],
        "classes": [],
        "outputs": [],
        "steps": [],
        "placement": None,
    }


def test_status_says_which_part_of_a_run_that_has_begun_is_still_starting(project: Path):
    running(project, starting=Progress("warming up plans", 3, 7))
    result = freshline("status", "-p", project)
    assert "Starting: warming up plans, 3 of 7." in result.stdout
    assert "packets HEALTHY" in result.stdout


def test_a_start_that_was_killed_is_no_start(project: Path):
    starting(project, pid=dead_process())
    result = freshline("status", "-p", project)
    assert "No runner is running" in result.stderr
    assert "The run ended during its start: opening tables, 12 of 42." in result.stdout
    assert json.loads(freshline("status", "-p", project, "--json").stdout)["starting"] is None


def test_a_runner_on_another_machine_is_believed_while_it_writes(project: Path):
    running(project, host="elsewhere", pid=dead_process())
    assert freshline("status", "-p", project).stderr == ""


def test_status_of_a_warehouse_that_never_ran_points_to_run(project: Path):
    result = freshline("status", "-p", project)
    assert isinstance(result.exception, InputError)
    assert result.exception.remedy == "Start it with `freshline run`"
