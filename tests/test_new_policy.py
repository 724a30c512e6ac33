"""A new policy is a file with its order and an entry in `definitions.language.policies`."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.definitions.language.policies import POLICIES, Policy
from freshline.definitions.load import loads
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.simulate import simulate
from freshline_lab.runs.warehouses import random_warehouse
from patience import PATIENCE_US

# Both tables load every file: what they wait for comes at one instant and is due at one instant.
PROJECT = """\
name: lazy
pools: {updates: {tracks: 1, policy: POLICY}}
feeds:
  orders: {path: landing, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 30s}
tables:
  cheap: {feed: orders, cost: {startup: 1s}}
  dear: {feed: orders, cost: {startup: 9s}}
"""


@pytest.fixture(scope="module", autouse=True)
def _least_laxity() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(POLICIES, "llf", Policy("least_laxity:LeastLaxity"))
        yield


def freshline(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


def first_started(log: Path) -> list[str]:
    """The tables in the order in which each of them started first."""
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    started = [instruction["start"] for call in calls for instruction in call.get("instructions", ())]
    return list(dict.fromkeys(started))


@pytest.mark.parametrize(("policy", "order"), [("edf", ["cheap", "dear"]), ("llf", ["dear", "cheap"])])
def test_a_new_policy_is_simulated_and_replayed(tmp_path: Path, policy: str, order: list[str]) -> None:
    file, log = tmp_path / "freshline.yml", tmp_path / "log.jsonl"
    file.write_text(PROJECT.replace("POLICY", policy), encoding="utf-8")
    code, said = freshline("simulate", "-p", file, "--for", "10m", "--log", log)
    assert code == 0, said
    assert f"policy {policy}." in said
    assert first_started(log) == order
    assert freshline("replay", log)[0] == 0


@given(st.integers(0, 10**6))
def test_a_new_policy_serves_whatever_warehouse(seed: int) -> None:
    warehouse = what_if(random_warehouse(seed), "llf", {})
    log = io.StringIO()
    simulate(make_plan(warehouse), 100 * SECOND, seed, journal_to=log)
    header, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(kernel_of(header), calls) == (len(calls), None)


def test_a_new_policy_is_run_and_promised_nothing_until_something_is_proven(tmp_path: Path) -> None:
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT.replace("POLICY", "llf"), encoding="utf-8")
    code, said = freshline("plan", "-p", file)
    assert code == 1
    assert "Pool updates: no staleness bound is known for policy llf." in said
    assert "1 track with policy edf would bound all of its tables." in said


def test_a_new_policy_can_be_tried_on_another_warehouse_and_is_offered(tmp_path: Path) -> None:
    file, log = tmp_path / "freshline.yml", tmp_path / "log.jsonl"
    file.write_text(PROJECT.replace("POLICY", "edf"), encoding="utf-8")
    assert freshline("simulate", "-p", file, "--for", "10m", "--policy", "llf", "--log", log)[0] == 0
    assert first_started(log) == ["dear", "cheap"]
    with pytest.raises(InputError, match=r"'lazy' is not a choice here. Write .* 'admit-all' or 'llf'"):
        loads(PROJECT.replace("POLICY", "lazy"))
    with pytest.raises(InputError, match="it has no effect with the policy llf"):
        loads(PROJECT.replace("POLICY", "llf, recovery: fastest"))


def test_a_new_policy_runs_on_spark(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    landing, storage = tmp_path / "landing", tmp_path / "warehouse"
    landing.mkdir()
    (landing / "1.json").write_text('{"ts": "2026-01-01T00:00:00Z", "n": 1}\n', encoding="utf-8")
    warehouse = loads(PROJECT.replace("POLICY", "llf"))
    with Runner(warehouse, tmp_path, storage, RunOptions(session=spark, drain=True)) as runner:
        runner.run(PATIENCE_US)
    assert runner.stopped_because == "nothing is left to load"
    for table in warehouse.tables:
        assert DeltaTable(storage / "tables" / table).to_pyarrow_table()["n"].to_pylist() == [1]
    (log,) = (storage / "_freshline" / "logs").glob("*.jsonl")
    assert first_started(log) == ["dear", "cheap"]
    assert freshline("replay", log)[0] == 0
