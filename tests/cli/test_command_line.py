"""The command line as a user meets it: output, JSON, exit codes."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from freshline.cli.main import app
from freshline.cli.printing.grid import grid
from holding_project import HOLDS


def freshline(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(HOLDS, encoding="utf-8")
    (tmp_path / "landing" / "packets").mkdir(parents=True)
    return file


# What is said of a table in a pool whose policy has no recovery.
NO_RECOVERY = {"expected": False, "recovery_period": None, "recovery_time": None}


def test_plan_prints_the_documented_json(project):
    result = freshline("plan", "-p", project, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "holds": True,
        "pools": [
            {
                "name": "updates",
                "tracks": 2,
                "policy": "edf",
                "behaves_as": "edf",
                "utilization": 0.246,
                "provisioning": "worst",
                "clusters": None,
                "tracks_least": 1,
                "blocking": 0.0,
                "blocking_most": None,
                "batch_limit": None,
            }
        ],
        "tables": [
            {
                "name": "packets",
                "pool": "updates",
                "period": 300.0,
                "cost": 40.8,  # 1.2·(3 + 0.1·310)
                "cost_source": "declared",
                "response_bound": 300.0,
                "staleness_bound": 910.0,  # 300 + 300 + 310
                "target_lag": 1200.0,
                "holds": True,
                **NO_RECOVERY,
                "refresh": "append",
            },
            {
                "name": "traffic",
                "pool": "updates",
                "period": 900.0,
                "cost": 99.0,
                "cost_source": "declared",
                "response_bound": 900.0,
                "staleness_bound": 2710.0,  # 900 + 900 + 910
                "target_lag": 3600.0,
                "holds": True,
                **NO_RECOVERY,
                "refresh": "append",
            },
        ],
        "advice": [],
    }


def test_plan_shows_the_verdict_as_tables(project):
    result = freshline("plan", "-p", project.parent)
    assert result.exit_code == 0
    assert "traffic  updates     15m" in result.stdout
    assert "Holds: all 2 targets are proven." in result.stdout


def test_plan_of_a_target_that_is_not_proven_exits_with_1_and_advice(project):
    project.write_text(HOLDS.replace("target_lag: 20 minutes", "target_lag: 15 minutes"), encoding="utf-8")
    result = freshline("plan", "-p", project)
    assert result.exit_code == 1
    assert "Not proven for 1 of 2 tables." in result.stdout
    assert "packets: a target_lag of 15m 10s holds as it is." in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("startup: 3s, rate: 0.1, variability: 0.2", "startup: 3s, rate: 2", "more than its period of 5m"),
        ("policy: edf", "policy: fifo", "no staleness bound is known for policy fifo"),
    ],
)
def test_what_is_not_proven_is_a_verdict_not_a_crash(project, old, new, advice):
    project.write_text(HOLDS.replace(old, new), encoding="utf-8")
    result = freshline("plan", "-p", project)
    assert result.exit_code == 1
    assert advice in result.stdout


def test_more_work_than_tracks_is_a_verdict_with_advice(project):
    text = HOLDS.replace("tracks: 2", "tracks: 1").replace("startup: 3s", "startup: 150s")
    project.write_text(text.replace("startup: 9s", "startup: 400s"), encoding="utf-8")
    result = freshline("plan", "-p", project)
    assert result.exit_code == 1
    assert "Pool updates is overloaded: its tables need 1.27 of 1 track." in result.stdout
    assert "Pool updates: 2 tracks would prove every target of its tables." in result.stdout


def test_simulate_prints_the_documented_json(project):
    result = freshline("simulate", "-p", project, "--for", "2h", "--seed", "3", "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert (record["holds"], record["seed"], record["for"]) == (True, 3, 7200.0)
    packets, traffic = record["tables"]
    assert packets["staleness_bound"] == 910.0
    assert 300 < packets["staleness_max"] <= 910
    assert (packets["jobs"], packets["misses"]) == (24, 0)
    assert 0 < traffic["lag_max"] <= traffic["staleness_max"] <= traffic["staleness_bound"]


def test_simulate_tries_other_policies_and_tracks(project):
    result = freshline(
        "simulate", "-p", project, "--policy", "clustered-edf", "--tracks", "updates=4", "--json"
    )
    pool = json.loads(result.stdout)["pools"][0]
    assert (pool["policy"], pool["tracks"]) == ("clustered-edf", 4)
    assert [cluster["tables"] for cluster in pool["clusters"]] == [["packets"], ["traffic"]]
    assert sum(cluster["tracks"] for cluster in pool["clusters"]) == 4


def test_simulate_exits_with_1_where_a_target_was_exceeded(project):
    project.write_text(HOLDS.replace("target_lag: 20 minutes", "target_lag: 5 minutes"), encoding="utf-8")
    result = freshline("simulate", "-p", project)
    assert result.exit_code == 1
    assert "Exceeded: 1 targets." in result.stdout


def test_simulate_draws_staleness_and_tracks(project, tmp_path):
    result = freshline("simulate", "-p", project, "--for", "1h", "--plot", tmp_path / "pictures")
    assert result.exit_code == 0
    for name in ("staleness.png", "tracks.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")


def test_simulate_writes_the_same_log_for_the_same_seed(project, tmp_path):
    logs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for log in logs:
        assert freshline("simulate", "-p", project, "--log", log).exit_code == 0
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert logs[0].read_bytes().count(b"\n") > 100


def test_the_log_does_not_depend_on_how_the_files_path_is_written(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for log, path in zip(logs, (project, "freshline.yml"), strict=True):
        assert freshline("simulate", "-p", path, "--for", "1h", "--log", log).exit_code == 0
    assert logs[0].read_bytes() == logs[1].read_bytes()


def test_the_history_of_runs_is_not_opened_where_every_cost_is_declared(project):
    history = project.parent / "warehouse" / "_freshline" / "history.sqlite"
    history.parent.mkdir(parents=True)
    history.write_bytes(b"this is no database")
    assert freshline("plan", "-p", project).exit_code == 0
    project.write_text(HOLDS.replace(", cost: {startup: 9s, rate: 0.1}", ""), encoding="utf-8")
    assert "history.sqlite cannot be opened" in str(freshline("plan", "-p", project).exception)


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_a_name_with_brackets_is_no_markup(command, project):
    project.write_text(HOLDS.replace("name: network", "name: '[/foo] [red]x'"), encoding="utf-8")
    result = freshline(command, "-p", project)
    assert result.exit_code == 0
    assert "[/foo] [red]x" in result.stdout


def test_a_name_with_dollars_is_drawn(project, tmp_path):
    project.write_text(HOLDS.replace("name: network", "name: '$x_{$'"), encoding="utf-8")
    assert freshline("simulate", "-p", project, "--for", "1h", "--plot", tmp_path / "out").exit_code == 0


def test_long_names_and_advice_are_not_broken_where_nobody_looks(project):
    long = "p" * 127
    text = HOLDS.replace("packets", long).replace("target_lag: 20 minutes", "target_lag: 15 minutes")
    project.write_text(text, encoding="utf-8")
    lines = [line.strip() for line in freshline("plan", "-p", project).stdout.splitlines()]
    (row,) = (line for line in lines if line.startswith(f"{long} "))
    assert row.split() == [long, "updates", "5m", "40.8s", "5m", "15m", "10s", "15m", "not", "proven"]
    assert f"- {long}: a target_lag of 15m 10s holds as it is." in lines


def test_on_a_narrow_screen_names_are_cut_and_numbers_and_verdicts_are_not():
    table = grid("Tables", "table", ">period", ">staleness ≤", "")
    table.add_row("p" * 127, "15m 10s", "1d 20h", "[red]not proven[/]")
    screen = Console(width=50, file=io.StringIO(), color_system=None)
    screen.print(table)
    assert [line.rstrip() for line in screen.file.getvalue().splitlines()] == [
        "Tables",
        " table            period  staleness ≤",
        " ppppppppppppp…  15m 10s       1d 20h  not proven",
    ]


def test_a_long_list_of_tables_is_cut_with_the_troubled_ones_first(project):
    rows = [f"  t{n}: {{feed: packets, target_lag: 5h, cost: {{startup: 1s}}}}" for n in range(60)]
    rows.append("  late: {feed: packets, target_lag: 1s, cost: {startup: 1s}}")
    text = HOLDS[: HOLDS.index("tables:")] + "tables:\n" + "\n".join(rows) + "\n"
    project.write_text(text, encoding="utf-8")
    result = freshline("plan", "-p", project)
    lines = result.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip().startswith("table "))
    assert lines[first + 1].split()[0] == "late"
    assert "... and 21 more: --all shows every one, --json too." in result.stdout
    assert "t59" in freshline("plan", "-p", project, "--all").stdout


def test_schema_prints_a_json_schema_of_the_file():
    schema = json.loads(freshline("schema").stdout)
    assert json.loads(freshline("schema", "--json").stdout) == schema
    sections = {"pools", "nodes", "links", "feeds", "tables", "queries", "classes"}
    assert set(schema["properties"]) == {"name", "storage", "history", "cores", *sections}
    assert schema["additionalProperties"] is False


def test_analyze_prints_the_documented_json(tmp_path):
    file = tmp_path / "tasks.json"
    tasks = [{"name": "a", "cost": "26", "period": 70}, {"name": "b", "cost": 62, "period": "100.0"}]
    file.write_text(json.dumps({"tracks": 1, "tasks": tasks}), encoding="utf-8")
    result = freshline("analyze", file, "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert set(record) == {"utilization", "rm", "np_edf_one_track", "np_gedf", "gedf"}
    assert record["rm"]["response_times"] == [26.0, 118.0]
    assert record["rm"]["schedulable"] is False
    assert record["np_edf_one_track"] == {"schedulable": False}
    assert record["np_gedf"] == {"x": 36.0, "tardiness": [62.0, 98.0]}
    assert "RM response" in freshline("analyze", file).stdout


def test_the_example_warehouse_holds_in_plan_and_simulation():
    example = Path(__file__).parents[2] / "examples" / "network"
    assert freshline("plan", "-p", example).exit_code == 0
    assert freshline("simulate", "-p", example, "--for", "4h").exit_code == 0
