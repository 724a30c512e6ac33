"""`freshline simulate --requests`: service classes under requests that come by chance."""

import io
import itertools
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from cases import rest_in_soak, sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.definitions.language.policies import policies_for
from freshline.definitions.load import loads
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.requests.request_costs import RequestCosts, RequestExtent
from freshline.planning.costs.iterations import PastPart
from freshline.planning.plan.make import make_plan
from freshline.simulation.classes import ClassResult, RequestRate
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout

PROJECT = """\
name: asked
storage: warehouse
pools:
  updates: {tracks: 1}
  asked: {tracks: 1, policy: rds-quota}
feeds:
  raw: {period: 10s, arrival: files}
tables:
  raw: {feed: raw, pool: updates, target_lag: 60s, cost: {startup: 1s}}
classes:
  operators: {error: 0.2}
  guests: {error: 0.5}
"""
WITHOUT = PROJECT[: PROJECT.index("classes:")].replace(", policy: rds-quota", "")
# Tables and classes share the tracks.
SHARED = """\
name: shared
pools: {{main: {{tracks: {tracks}, policy: {policy}}}}}
feeds: {{f: {{period: 5s, arrival: files}}, g: {{period: 8s, arrival: files, jitter: 1s}}}}
tables:
  t: {{feed: f, cost: {{startup: 300ms, variability: 0.2}}}}
  u: {{feed: g, cost: {{startup: 500ms}}}}
  v: {{sql: "SELECT ts, count(*) AS n FROM t GROUP BY ts", period: 20s, cost: {{startup: 400ms}}}}
classes: {{gold: {{error: 0.3}}, lead: {{error: 0.5}}}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT, encoding="utf-8")
    return file


def run(project: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", "-p", str(project), "--for", "120s", *map(str, arguments)])


def test_json_tells_of_each_class_that_is_asked(project):
    result = run(project, "--json", "--requests", "guests:1/s:4", "--requests", "operators:0.5/s")
    shown = json.loads(result.stdout)
    assert result.exit_code == 0
    operators, guests = shown["requests"]  # the most important first
    assert (operators["class"], operators["rate"], operators["parts"]) == ("operators", 0.5, 8)
    assert (operators["part"], operators["deadline"], operators["error_target"]) == (0.15, 12.0, 0.2)
    assert (guests["class"], guests["parts"], guests["deadline"]) == ("guests", 4, 6.0)
    for each in (operators, guests):
        assert each["requests"] > 40
        assert each["rejected"] + each["answered"] + each["open"] == each["requests"]
        assert each["admitted"] + each["rejected"] == each["requests"]
        assert each["answered_in_time"] <= each["answered"]
        assert 0 < each["error"] < 1
        assert each["lost"] == 0
    asked = next(pool for pool in shown["pools"] if pool["name"] == "asked")
    assert operators["utilization"] + guests["utilization"] == pytest.approx(asked["tracks_busy"], abs=1e-5)


def test_the_screen_shows_the_error_beside_its_target(project):
    result = run(project, "--requests", "operators:0.5/s")
    row = next(line for line in result.stdout.splitlines() if line.startswith(" operators"))
    assert row.split()[1:6] == ["0.5/s", "8", "of", "150ms", "12s"]
    assert row.split()[-1] == "kept"
    assert "guests" not in result.stdout
    assert result.stderr == ""


def test_an_error_above_its_target_is_told_and_is_exit_code_1(project):
    result = run(project, "--requests", "operators:3/s", "--policy", "admit-all")
    assert result.exit_code == 1
    assert "Exceeded: 1 errors of classes." in result.stdout


def test_classes_that_nothing_asks_are_said_and_null(project):
    result = run(project, "--json")
    assert (result.exit_code, json.loads(result.stdout)["requests"]) == (0, None)
    assert result.stderr == (
        "No requests were simulated: nothing asks the classes (operators, guests). "
        "Add for instance --requests operators:1/s.\n"
    )


def test_without_classes_there_is_nothing_to_say(project):
    project.write_text(WITHOUT, encoding="utf-8")
    result = run(project, "--json")
    assert "requests" not in json.loads(result.stdout)
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("operator:5/s",), "the class `operator` of --requests does not exist"),
        (("operators:0/s",), "the class `operators` has a request rate of zero"),
        (("operators:0.0/s",), "the class `operators` has a request rate of zero"),
        (("operators:5/s:0",), "requests of the class `operators` have 0 parts"),
        (("operators:5/s:257",), "requests of the class `operators` have 257 parts"),
        (("operators:5/s", "operators:1/s"), "--requests is given twice for operators"),
        *(
            ((garbage,), f"--requests {garbage} is not CLASS:RATE/s[:PARTS]")
            for garbage in ("operators", "operators:5", "operators:-1/s", ":5/s", "operators:5/s:", "x:1/s:a")
        ),
    ],
)
def test_what_cannot_be_asked_is_bad_input(arguments, words, project):
    result = run(project, *(word for each in arguments for word in ("--requests", each)))
    assert isinstance(result.exception, InputError)
    assert words in result.exception.what


def test_requests_without_classes_are_bad_input(project):
    project.write_text(WITHOUT, encoding="utf-8")
    result = run(project, "--requests", "operators:5/s")
    assert isinstance(result.exception, InputError)
    assert "there are no classes" in result.exception.what


def test_a_slow_class_that_nothing_asks_is_bad_input(project):
    result = run(project, "--slow", "operators:2")
    assert isinstance(result.exception, InputError)
    assert "the class `operators` is to be slow, but has no requests" in result.exception.what


def test_parts_take_what_they_took_before(project):
    control = StorageLayout(project.parent / "warehouse").control()
    control.history.parent.mkdir(parents=True)
    parts = [PastPart(1, took, 4, 100) for took in (40_000, 60_000, 90_000)]
    with History(control.history) as history:
        costs = RequestCosts(history)
        for _ in range(2):  # the first answer has Spark compile, and does not count
            costs.enter("SELECT 1", RequestExtent(rows=100, size=1_000), parts)
    (shown,) = json.loads(run(project, "--json", "--requests", "operators:1/s").stdout)["requests"]
    assert (shown["part"], shown["deadline"]) == (0.06, 4.8)


CHANGES = (
    ("--crash", "30s:10s"),
    ("--slow", "operators:1.5"),
    ("--slow", "raw:2"),
    ("--fail", "raw:0.3"),
    ("--outage", "raw:20s-50s"),
    ("--gap", "raw:60s-80s"),
)


@pytest.mark.parametrize("size", rest_in_soak([0, 1, 5, 6, 2, 3, 4], first=4))
def test_requests_go_with_all_that_may_go_wrong_and_the_log_replays(size, project, tmp_path):
    for chosen in itertools.combinations(CHANGES, size):
        log = tmp_path / "log.jsonl"
        changes = [word for change in chosen for word in change]
        asked = ("--requests", "operators:1/s", "--requests", "guests:2/s:3")
        result = run(project, "--json", "--log", log, *asked, *changes)
        assert result.exit_code in (0, 1), (changes, result.exception)
        for each in json.loads(result.stdout)["requests"]:
            over = each["rejected"] + each["answered"] + each["open"] + each["lost"]
            assert over == each["requests"], changes
            assert (each["lost"] > 0) == (CHANGES[0] in chosen)
        assert CliRunner().invoke(app, ["replay", str(log)]).exit_code == 0, changes


def simulated(seed: int, policy: str, tracks: int, rates: dict[str, RequestRate], **changes) -> tuple:
    plan = make_plan(loads(SHARED.format(policy=policy, tracks=tracks)))
    log = io.StringIO()
    result = simulate(plan, 60 * SECOND, seed, requests=rates, journal_to=log, **changes)
    return result, log.getvalue()


@sampled(30)
@given(
    seed=st.integers(0, 99),
    policy=st.sampled_from(policies_for("classes")),
    tracks=st.integers(1, 3),
    rates=st.dictionaries(
        st.sampled_from(["gold", "lead"]),
        st.builds(
            RequestRate,
            st.fractions(Fraction(1, 10), 20, max_denominator=10),
            st.integers(1, 12),
            st.integers(1_000, 500_000),
        ),
        min_size=1,
    ),
    crash=st.booleans(),
)
def test_whatever_is_asked_the_tables_keep_their_bounds(seed, policy, tracks, rates, crash):
    changes = {"crashes": [(20 * SECOND, 25 * SECOND)]} if crash else {}
    result, log = simulated(seed, policy, tracks, rates, **changes)
    assert not any(table.exceeded_bound for table in result.tables)
    counted = result.of(ClassResult)
    assert [each.name for each in counted] == [name for name in ("gold", "lead") if name in rates]
    for each in counted:
        counts = each.counts
        assert counts.rejected + counts.answered + counts.open + counts.lost == counts.requests
        assert min(counts.rejected, counts.answered, counts.open, counts.lost, counts.in_time) >= 0
        assert crash or counts.lost == 0
    assert sum(each.utilization for each in counted) <= 1
    # The same seed gives the same run, and its journal replays.
    again: tuple[SimulationResult, str] = simulated(seed, policy, tracks, rates, **changes)
    assert again[1] == log
    assert again[0].seen == result.seen
    header, *calls = map(json.loads, log.splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)


def test_another_seed_is_another_run():
    rates = {"gold": RequestRate(Fraction(2))}
    assert simulated(1, "rds-edf", 1, rates)[1] != simulated(2, "rds-edf", 1, rates)[1]


def test_another_class_does_not_change_when_a_class_is_asked():
    def asked(log: str) -> list[int]:
        events = (event for line in log.splitlines()[1:] for event in json.loads(line).get("events", ()))
        return [event["submitted"] for event in events if event.get("class") == "gold"]

    alone = {"gold": RequestRate(Fraction(1))}
    beside = {**alone, "lead": RequestRate(Fraction(3))}
    assert asked(simulated(3, "rds-edf", 1, alone)[1]) == asked(simulated(3, "rds-edf", 1, beside)[1])
