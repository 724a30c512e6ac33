"""`freshline simulate` with outages, gaps, slow tables, failures and crashes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from freshline.base.errors import InputError
from freshline.cli.main import app

# One track. `raw` takes 4 s of every 10, `sums` 1 s of every 20.
PROJECT = """\
name: what if
pools:
  updates: {tracks: 1, policy: edf}
feeds:
  raw: {period: 10s, phase: 10s, arrival: files}
  live: {period: 10s, arrival: continuous}
tables:
  raw: {feed: raw, target_lag: 40s, cost: {startup: 4s}}
  sums: {sql: "SELECT ts, count(*) AS n FROM raw GROUP BY ts", period: 20s, cost: {startup: 1s}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT, encoding="utf-8")
    return file


def simulate(project: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", "-p", str(project), *map(str, arguments)])


def record(project: Path, *arguments: str) -> dict:
    return json.loads(simulate(project, "--json", *arguments).stdout)


def test_json_tells_of_outages_states_and_recoveries(project):
    result = simulate(project, "--for", "200s", "--json", "--outage", "raw:45s-85s")
    shown = json.loads(result.stdout)
    assert result.exit_code == 1  # the target of 40 s is exceeded by the outage
    assert shown["holds"] is False
    assert shown["outages"] == [{"feed": "raw", "start": 45.0, "end": 85.0}]
    assert shown["slow"] == {}
    # raw loads 50 by 89, sums takes it by 90, and raw goes on with 60 and 70 by 94 and with 80 and 90 by 98.
    # Then sums is a whole period behind: it loads up to 70 by 99.
    raw, sums = shown["tables"]
    assert (raw["state"], raw["recovered_at"], raw["lag_max"]) == ("HEALTHY", 98.0, 40.0)
    assert (sums["state"], sums["recovered_at"], sums["lag_max"]) == ("HEALTHY", 99.0, 40.0)


def test_failures_and_crashes_are_told_and_the_log_replays(project, tmp_path):
    changes = (
        "--for",
        "400s",
        "--fail",
        "raw:0.3",
        "--fail",
        "sums:0",
        "--crash",
        "100s",
        "--crash",
        "200s:30s",
    )
    shown = record(project, *changes)
    assert shown["failures"] == {"raw": 0.3, "sums": 0.0}
    assert shown["crashes"] == [{"start": 100.0, "end": 110.0}, {"start": 200.0, "end": 230.0}]
    raw, sums = shown["tables"]
    assert raw["failed"] > 0 == sums["failed"]
    log = tmp_path / "log.jsonl"
    result = simulate(project, *changes, "--log", log)
    assert result.stderr == ""  # no bound was exceeded that was asserted
    assert f"Table raw: {raw['failed']} of {raw['jobs'] + raw['failed']} jobs failed." in result.stdout
    assert "Table sums: 0 of" in result.stdout
    assert "The runner was down: 1m 40s to 1m 50s." in result.stdout
    assert "The runner was down: 3m 20s to 3m 50s." in result.stdout
    assert "recovered at" in result.stdout
    replayed = CliRunner().invoke(app, ["replay", str(log)])
    assert (replayed.exit_code, "Identical" in replayed.stdout) == (0, True)


def test_json_without_a_what_if_has_the_same_fields(project):
    shown = record(project, "--for", "200s")
    assert (shown["outages"], shown["slow"], shown["failures"], shown["crashes"]) == ([], {}, {}, [])
    assert [table["failed"] for table in shown["tables"]] == [0, 0]
    assert [(table["state"], table["recovered_at"]) for table in shown["tables"]] == [("HEALTHY", None)] * 2


def test_a_feed_that_is_down_at_the_end_is_silent(project):
    shown = record(project, "--for", "200s", "--outage", "raw:150s-1h", "--outage", "raw:0-20s")
    assert shown["outages"] == [
        {"feed": "raw", "start": 0.0, "end": 20.0},
        {"feed": "raw", "start": 150.0, "end": 3600.0},
    ]
    assert [table["state"] for table in shown["tables"]] == ["SILENT", "HEALTHY"]


def test_slow_tables_are_told_and_keep_their_planned_cost(project):
    shown = record(project, "--for", "200s", "--slow", "raw:1.5", "--slow", "sums:0.5")
    assert shown["slow"] == {"raw": 1.5, "sums": 0.5}
    assert [table["cost"] for table in shown["tables"]] == [4.0, 1.0]
    assert shown["tables"][0]["staleness_max"] == 16.0  # 10 for the period, 6 for the job


def test_the_screen_shows_recoveries_only_where_something_was_changed(project):
    usual = simulate(project, "--for", "200s").stdout
    assert "state" not in usual
    assert "recovered at" not in usual
    shown = simulate(project, "--for", "200s", "--outage", "raw:45s-85s", "--slow", "sums:0.5").stdout
    assert "recovered at" in shown
    assert "HEALTHY" in shown
    assert "Feed raw down: 45s to 1m 25s." in shown
    assert "Table sums: costs multiplied by 0.5." in shown
    assert "Exceeded: 1 targets." in shown
    assert "freshline plan" not in shown


def test_a_gap_is_told_and_a_derived_table_jumps_over_it(project):
    changes = ("--for", "220s", "--outage", "raw:45s-185s")
    shown = record(project, *changes, "--gap", "raw:60s-150s", "--gap", "raw:150s-160s")
    assert shown["gaps"] == [{"feed": "raw", "start": 60.0, "end": 160.0}]
    without = record(project, *changes)
    assert without["gaps"] == []
    assert shown["tables"][0] == without["tables"][0]  # files come as ever
    assert shown["tables"][1]["recovered_at"] < without["tables"][1]["recovered_at"]
    text = simulate(project, *changes, "--gap", "raw:60s-160s").stdout
    assert "Feed raw without rows: 1m to 2m 40s." in text


def test_a_gap_alone_breaks_no_bound_and_shows_the_states(project):
    result = simulate(project, "--for", "300s", "--gap", "raw:45s-85s", "--gap", "live:0-10s")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "HEALTHY" in result.stdout


def test_a_bound_that_an_outage_or_a_slow_table_broke_is_no_bug(project):
    for change in (("--outage", "raw:45s-185s"), ("--slow", "raw:3")):
        result = simulate(project, "--for", "400s", *change)
        assert result.exit_code == 1
        assert "bug" not in result.stderr


def test_pictures_are_drawn_with_outages(project, tmp_path):
    simulate(project, "--for", "200s", "--outage", "raw:45s-85s", "--plot", tmp_path / "out")
    assert sorted(picture.name for picture in (tmp_path / "out").iterdir()) == [
        "lag.png",
        "staleness.png",
        "tracks.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--outage", "raw"), "--outage raw is not FEED:START-END. Write it as in --outage packets:1h-2h."),
        (("--outage", "raw:5s"), "--outage raw:5s is not FEED:START-END."),
        (("--outage", ":1s-2s"), "is not FEED:START-END."),
        (("--outage", "raw:-5s"), "the duration is empty."),
        (("--outage", "raw:1-2s"), "--outage raw:1-2s: '1' is not a duration."),
        (("--outage", "raw:1s-2lightyears"), "has the unknown unit 'lightyears'."),
        (("--outage", "raw:2s-2s"), "does not end after it begins."),
        (("--outage", "raw:3s-2s"), "does not end after it begins."),
        (("--outage", "raws:1s-2s"), "names the feed `raws`, which does not exist. Perhaps `raw` is meant."),
        (("--outage", "live:1s-2s"), "names the feed `live`, which is continuous."),
        (("--outage", "raw:300s-301s"), "begins when the run of 5m is over."),
        (("--gap", "raw"), "--gap raw is not FEED:START-END. Write it as in --gap packets:1h-2h."),
        (("--gap", "raw:1-2s"), "--gap raw:1-2s: '1' is not a duration."),
        (("--gap", "raw:3s-2s"), "a gap of the feed `raw` does not end after it begins."),
        (("--gap", "raws:1s-2s"), "a gap names the feed `raws`, which does not exist. Perhaps `raw` is"),
        (("--gap", "raw:300s-301s"), "--gap raw:300s-301s begins when the run of 5m is over."),
        (("--slow", "raw"), "--slow raw is not NAME:FACTOR. Write it as in --slow traffic:1.5."),
        (("--slow", "raw:much"), "is not NAME:FACTOR."),
        (("--slow", "raw:-1"), "is not NAME:FACTOR."),
        (("--slow", "raw:nan"), "is not NAME:FACTOR."),
        (("--slow", "raw:1e3"), "is not NAME:FACTOR."),
        (("--slow", "raw:" + "9" * 5_000), "is not NAME:FACTOR."),
        (("--slow", "raw:0"), "`raw` is slow by the factor 0. Give a factor above zero."),
        (("--slow", "raws:2"), "`raws`, which is to be slow, does not exist. Perhaps `raw` is meant."),
        (("--slow", "raw:2", "--slow", "raw:3"), "--slow is given twice for raw."),
        (("--fail", "raw"), "--fail raw is not TABLE:RATE. Write it as in --fail traffic:0.1."),
        (("--fail", ":0.5"), "--fail :0.5 is not TABLE:RATE."),
        (("--fail", "raw:nan"), "is not TABLE:RATE."),
        (("--fail", "raw:-0.1"), "is not TABLE:RATE."),
        (("--fail", "raw:1e-3"), "is not TABLE:RATE."),
        (("--fail", "raw:1"), "the table `raw` fails at the rate 1. Give a rate of 0 or above, and below 1."),
        (("--fail", "raws:0.5"), "the failing table `raws` does not exist. Perhaps `raw` is meant."),
        (("--fail", "raw:0.1", "--fail", "raw:0.2"), "--fail is given twice for raw."),
        (("--crash", "soon"), "--crash soon: 'soon' is not a duration."),
        (("--crash", "5s:"), "--crash 5s:: the duration is empty."),
        (("--crash", "0s"), "the crash at 0s does not lie within the run."),
        (("--crash", "400s"), "the crash at 6m 40s is not over when the run of 5m is."),
        (("--crash", "295s"), "the crash at 4m 55s is not over when the run of 5m is."),
        (("--crash", "20s", "--crash", "25s"), "the crash at 25s begins before the previous one is over."),
        (("--crash", "20s", "--crash", "20s"), "the crash at 20s begins before the previous one is over."),
    ],
)
def test_what_cannot_be_is_bad_input(arguments, words, project):
    error = simulate(project, "--for", "300s", *arguments).exception
    assert isinstance(error, InputError)
    assert words in str(error)


def test_bad_input_ends_with_exit_code_2(project):
    command = [sys.executable, "-m", "freshline", "simulate", "-p", project, "--outage", "raws:1s-2s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    sentence = "an outage names the feed `raws`, which does not exist. Perhaps `raw` is meant."
    assert done.stderr.strip() == sentence


def adaptive(project: Path, policy: str) -> Path:
    project.write_text(PROJECT.replace("policy: edf", f"policy: {policy}"), encoding="utf-8")
    return project


def test_json_tells_of_the_last_recovery_and_what_was_promised_of_it(project):
    raw, sums = record(adaptive(project, "aus"), "--for", "400s", "--outage", "raw:45s-185s")["tables"]
    recovery = raw["recovery"]
    assert recovery["entered"] == 185.0  # when the files come
    assert recovery["entered"] < recovery["ended"] <= recovery["due"]
    assert recovery["in_time"] is True
    assert raw["state"] == "HEALTHY"
    assert sums["recovery"] is None or sums["recovery"]["in_time"] is not False


def test_a_table_in_recovery_mode_at_the_end_is_recovering(project):
    changes = ("--for", "200s", "--outage", "raw:45s-185s")
    raw = record(adaptive(project, "aus"), *changes)["tables"][0]
    assert (raw["state"], raw["recovery"]["ended"], raw["recovery"]["in_time"]) == ("RECOVERING", None, None)
    assert raw["recovery"]["due"] > 200


def test_without_a_recovery_mode_there_is_no_recovery_to_tell_of(project):
    tables = record(project, "--for", "400s", "--outage", "raw:45s-185s")["tables"]
    assert [table["recovery"] for table in tables] == [None, None]


def test_late_after_says_from_which_lag_on_a_table_is_late(project):
    # b, the lighter of two that would need all that is spare, waits while a recovers.
    project.write_text(
        """\
name: two
pools: {updates: {tracks: 1, policy: aus}}
feeds:
  raw: {period: 10s, phase: 10s, arrival: files}
tables:
  a: {feed: raw, late_after: 25s, weight: 2, cost: {startup: 3s}}
  b: {feed: raw, late_after: 25s, cost: {startup: 3s}}
""",
        encoding="utf-8",
    )
    shown = record(project, "--for", "200s", "--outage", "raw:45s-185s")["tables"]
    assert [table["state"] for table in shown] == ["RECOVERING", "LATE"]
    assert shown[1]["recovery"] is None


def test_an_expected_bound_that_is_exceeded_is_no_bug(project):
    project.write_text(
        """\
name: hopeful
pools: {updates: {tracks: 1, policy: aus, provisioning: average}}
feeds:
  raw: {period: 10s, phase: 10s, arrival: files}
tables:
  a: {feed: raw, cost: {startup: 5s, variability: 0.9}}
  b: {feed: raw, cost: {startup: 5s, variability: 0.9}}
""",
        encoding="utf-8",
    )
    result = simulate(project, "--for", "8h", "--json")
    shown = json.loads(result.stdout)
    assert any(table["staleness_max"] > table["staleness_bound"] for table in shown["tables"])
    assert (result.exit_code, result.stderr) == (0, "")


def test_certificates_that_were_given_up_are_counted_with_their_reasons(project):
    changes = ("--for", "400s", "--outage", "raw:45s-185s")
    usual = simulate(adaptive(project, "aus-slack"), *changes).stdout
    assert "given up" not in usual
    slow = simulate(project, *changes, "--slow", "raw:1.5").stdout
    (line,) = [line for line in slow.splitlines() if "given up" in line]
    assert line.startswith("Pool updates: ")
    assert "an update of raw cost more than was assumed" in line
