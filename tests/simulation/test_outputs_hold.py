"""What `plan` proves of outputs holds in simulation, and `simulate` says so if it does not."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.duration import SECOND
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.placed_steps import PlacedSteps
from freshline.planning.plan.plan import Plan
from freshline.simulation.simulate import simulate
from freshline_lab.campaigns.placement.output_projects import try_outputs

OLD_RECORDS = """
name: alerts
nodes: {here: {}}
feeds: {speeds: {period: 10s, timestamp_jitter: 5s, burst: 100}}
tables: {alerts: {feed: speeds, cost: {startup: 100ms}, deadline: 3s}}
"""
# Each file releases the join, which one file's burst would not fit beside the other output.
JOINED = """
name: joined
nodes: {here: {}}
feeds:
  a: {period: 30s, burst: 1}
  b: {period: 30s, phase: 500ms, burst: 1}
  c: {period: 30s, phase: 1s, burst: 1}
  d: {period: 30s, phase: 1500ms, burst: 1}
  x: {period: 30s, phase: 29900ms, burst: 1}
tables:
  ta: {feed: a, cost: {startup: 50ms}}
  tb: {feed: b, cost: {startup: 50ms}}
  tc: {feed: c, cost: {startup: 50ms}}
  td: {feed: d, cost: {startup: 50ms}}
  joined: {sources: [ta, tb, tc, td], cost: {startup: 4s}, deadline: 43s}
  tx: {feed: x, cost: {startup: 4s}, deadline: 20s}
"""
# A file of the slow feed makes the join read many files of the fast one.
FAST_AND_SLOW = """
name: unequal
nodes: {here: {}}
feeds:
  fast: {period: 2s, burst: 10}
  slow: {period: 40s, phase: 500ms, burst: 1}
tables:
  some: {feed: fast, cost: {startup: 10ms}}
  others: {feed: slow, cost: {startup: 10ms}}
  joined: {sources: [some, others], cost: {startup: 50ms, per_row: 20ms}, deadline: 42s}
"""


def planned(text: str) -> Plan:
    warehouse = loads(text)
    return with_outputs(make_plan(warehouse), plan_outputs(warehouse))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_proven_output_misses_its_deadline(seed: int) -> None:
    trial = try_outputs(seed)
    assert not trial.broken, (seed, trial.outputs)


@pytest.mark.parametrize("text", [OLD_RECORDS, JOINED, FAST_AND_SLOW])
def test_an_output_that_misses_deadlines_is_not_proven(text: str) -> None:
    plan = planned(text)
    late = [output for output in simulate(plan, 1200 * SECOND).outputs if output.misses]
    assert late
    assert not {output.name for output in plan.outputs if output.holds} & {output.name for output in late}
    assert not any(output.broke_proof for output in late)


def test_rows_are_no_older_than_the_age_of_their_feed_when_their_file_comes() -> None:
    text = OLD_RECORDS.replace("burst", "age: 6s, burst").replace("deadline: 3s", "deadline: 8s")
    (output,) = simulate(planned(text), 3600 * SECOND).outputs
    assert output.misses == 0
    assert output.latency_max_us is not None
    assert 6 * SECOND < output.latency_max_us <= 6 * SECOND + SECOND // 10


def test_a_file_of_each_feed_releases_a_join() -> None:
    steps = PlacedSteps(loads(JOINED))
    assert steps.instances == {"ta": 1, "tb": 1, "tc": 1, "td": 1, "joined": 4, "tx": 1}
    # What is computed twice from one feed, and joined, is released once.
    text = JOINED.replace("[ta, tb, tc, td]", "[p, q]").replace(
        "  joined:",
        "  p: {sources: [ta, tb], cost: {startup: 1s}}\n  q: {sources: [p], cost: {startup: 1s}}\n  joined:",
    )
    text = text.replace("tc: {feed: c", "tc: {deadline: 1m, feed: c").replace(
        "td: {feed: d", "td: {deadline: 1m, feed: d"
    )
    assert PlacedSteps(loads(text)).instances["joined"] == 2


def test_a_broken_proof_of_an_output_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "freshline.yml").write_text(OLD_RECORDS)
    # Undoes a part of the proof: what records have waited for when their file is found.
    monkeypatch.setattr(PlacedSteps, "left_us", lambda *_: 3 * SECOND)
    ran = CliRunner().invoke(app, ["simulate", "-p", str(tmp_path), "--for", "10m", "--json"])
    assert ran.exit_code == 1
    assert "A proven bound was exceeded: alerts." in ran.stderr
    # With an outage from the start, nothing is asserted.
    down = ["simulate", "-p", str(tmp_path), "--for", "10m", "--outage", "speeds:0s-9s"]
    assert "A proven bound was exceeded" not in CliRunner().invoke(app, down).stderr


def test_plan_prints_the_age_that_outputs_assume(tmp_path: Path) -> None:
    text = OLD_RECORDS.replace("deadline: 3s", "deadline: 9s")
    (tmp_path / "freshline.yml").write_text(text)
    ran = CliRunner().invoke(app, ["plan", "-p", str(tmp_path), "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["outputs"][0]["assumes"] == [{"feed": "speeds", "age": 5.0}]
    shown = " ".join(CliRunner().invoke(app, ["plan", "-p", str(tmp_path)]).stdout.split())
    assert "are at most 5s old for speeds, its `timestamp_jitter`, as it has no `age`." in shown
    (tmp_path / "freshline.yml").write_text(text.replace("burst", "age: 6s, burst"))
    shown = " ".join(CliRunner().invoke(app, ["plan", "-p", str(tmp_path)]).stdout.split())
    assert "are at most 6s old for speeds." in shown
