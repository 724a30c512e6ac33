"""Learned costs in a warehouse: filled in where none is declared, and shown as such by the commands."""

import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cases import sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.cli.shared import load_with_costs, storage_path
from freshline.definitions.load import loads
from freshline.definitions.sections.cost import Cost
from freshline.planning.costs.bounds import worst_case_us
from freshline.planning.costs.fit import FittedCost, PastRun
from freshline.planning.costs.iterations import PastPart
from freshline.planning.costs.learned import cost_of, learned_costs
from freshline.planning.costs.learned_queries import key_of
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.placed_steps import PlacedSteps, unknown_costs
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.testing.builder import Builder

STEPS = """
name: alerts
nodes: {edge: {}}
feeds: {speeds: {period: 20s, node: edge}}
tables:
  readings: {feed: speeds}
  alerts: {sources: [readings], deadline: 12s}
"""
PROJECT = """\
name: network
storage: data/tables
pools: {updates: {tracks: 2}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, bytes long", timestamp: ts, period: 3s}
tables:
  packets: {feed: packets, target_lag: 15s}
  traffic: {sql: "SELECT ts, sum(bytes) AS bytes FROM packets GROUP BY ts", period: 6s, cost: {startup: 1s, rate: 0.1}}
"""  # noqa: E501


def run(number: int, duration_us: int, rows: int = 8_000) -> PastRun:
    return PastRun(number * 3 * SECOND, duration_us, rows, length_us=3 * SECOND, files=1)


def record(history: History, table: str, count: int, duration_us: int = 240_000) -> None:
    for number in range(count):
        history.record(table, run(number, duration_us))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT, encoding="utf-8")
    return file


def test_only_tables_without_a_declared_cost_and_with_enough_runs_are_filled_in(tmp_path):
    built = Builder().files("a", period=3).files("b", period=3).files("c", period=3).build()
    tables = {name: replace(built.tables[name], cost=None) for name in ("b", "c")}
    warehouse = replace(built, tables={**built.tables, **tables})
    with History(tmp_path / "history.sqlite") as history:
        record(history, "a", 20)
        record(history, "b", 20)
        record(history, "c", 2)
        learned = learned_costs(warehouse, history)
    assert learned.runs == {"b": 20}
    cost = Cost(
        240_000, Fraction(0), Fraction(51, 1000), loaded=True
    )  # 1/20, rounded up from a float just above
    assert learned.warehouse == replace(
        warehouse, tables={**warehouse.tables, "b": replace(warehouse.tables["b"], cost=cost)}
    )


def test_a_feed_that_may_be_late_is_counted_with_its_longest_update(tmp_path):
    built = Builder().files("a", period=3, jitter=3).build()
    warehouse = replace(built, tables={"a": replace(built.tables["a"], cost=None)})
    with History(tmp_path / "history.sqlite") as history:
        record(history, "a", 2_000)
        learned = learned_costs(warehouse, history).warehouse
    # Twice the usual three seconds, and nothing is known but that it cannot cost more than twice as much.
    (table,) = make_plan(learned).tables
    assert table.cost_us == pytest.approx(480_000, rel=0.002)


def test_more_than_twice_the_usual_raises_the_cost_as_a_whole():
    cost = cost_of(FittedCost(100_000, 30.0, 2_000.0, 2.0, 50))
    assert cost == Cost(150_000, Fraction(9, 100), Fraction(1), loaded=True)
    assert worst_case_us(cost, SECOND) == 3 * (100_000 + 60_000)


def test_storage_is_found_from_the_project_file_or_its_folder(project):
    warehouse, _ = load_with_costs(project)
    expected = project.parent / "data/tables"
    assert storage_path(project, warehouse) == storage_path(project.parent, warehouse) == expected
    assert storage_path(project, replace(warehouse, storage="/elsewhere")) == Path("/elsewhere")


def test_plan_says_what_is_missing_and_does_not_create_a_history(project):
    result = CliRunner().invoke(app, ["plan", "-p", str(project)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        f"{project}:7: no cost is known for packets. Declare one, such as `cost: {{startup: 3s, rate: 0.1}}` "
        "(seconds of work for each second of data), or have it learned: run it, or `freshline calibrate`."
    )
    assert [file.name for file in project.parent.iterdir()] == ["freshline.yml"]


def test_plan_marks_a_learned_cost(project):
    with History(StorageLayout(project.parent / "data/tables").control().history) as history:
        record(history, "packets", 40)
    shown = CliRunner().invoke(app, ["plan", "-p", str(project.parent)])
    assert shown.exit_code == 0
    assert "packets  updates      3s  246ms*" in shown.stdout
    assert "* learned from 40 runs\n" in shown.stdout
    printed = CliRunner().invoke(app, ["plan", "-p", str(project), "--json"])
    tables = json.loads(printed.stdout)["tables"]
    assert [(table["name"], table["cost_source"]) for table in tables] == [
        ("packets", "learned"),
        ("traffic", "declared"),
    ]


def test_simulate_runs_on_learned_costs(project):
    with History(StorageLayout(project.parent / "data/tables").control().history) as history:
        record(history, "packets", 40)
    result = CliRunner().invoke(app, ["simulate", "-p", str(project), "--for", "10m", "--json"])
    assert result.exit_code == 0
    packets, _ = json.loads(result.stdout)["tables"]
    assert packets["cost_source"] == "learned"
    assert 3 < packets["staleness_max"] <= packets["staleness_bound"]


QUERY_PROJECT = """\
name: dashboard
storage: data/tables
pools: {updates: {tracks: 1}, answers: {tracks: 1, policy: lrm}}
feeds:
  packets: {path: in, format: csv, schema: "ts timestamp, bytes long", timestamp: ts, period: 3s, rows: 10}
tables:
  packets: {feed: packets, pool: updates, slices: {}, cost: {startup: 1s}}
queries:
  total: {sql: "SELECT sum(bytes) AS bytes FROM packets", window: 10s, stride: 2s, pool: answers}
  largest: {sql: "SELECT max(bytes) AS bytes FROM packets", window: 10s, stride: 2s, pool: answers}
"""


def test_plan_and_simulation_count_with_what_answers_of_a_query_have_cost(tmp_path):
    file = tmp_path / "freshline.yml"
    file.write_text(QUERY_PROJECT, encoding="utf-8")
    total = load_with_costs(file)[0].queries["total"]
    with History(StorageLayout(tmp_path / "data/tables").control().history) as history:
        for at in range(20):
            # 100 ms a part and 1 ms a row, in two parts of unlike sizes, and 50 ms for the rest.
            parts = [(110_000, 64, 10), (130_000, 192, 30), (50_000, 0, 1)]
            history.record_parts(key_of(total), [PastPart(at, *part) for part in parts])
    for command in (["plan"], ["simulate", "--for", "1m"]):
        result = CliRunner().invoke(app, [*command, "-p", str(file), "--json"])
        found = {query["name"]: query for query in json.loads(result.stdout)["queries"]}
        assert found["total"]["cost"] == pytest.approx(0.19, abs=0.001)
        assert found["total"]["fixed"] == pytest.approx(0.15, abs=0.001)
        assert [found[name]["learned_from_answers"] for name in ("total", "largest")] == [20, 0]
        assert found["largest"]["cost"] < 0.01  # by its operators, over 100 rows
    shown = CliRunner().invoke(app, ["plan", "-p", str(file)]).stdout
    assert "190ms*" in shown
    assert "* learned from 20 answers" in shown


class Remembered:
    """Runs of steps, as somebody remembers them."""

    def __init__(self, runs: list[PastRun]) -> None:
        self._runs = runs

    def runs(self, table: str) -> list[PastRun]:
        return self._runs


@sampled(100)
@given(
    st.integers(0, 2**32),
    st.integers(3, 60),
    st.integers(50_000, 2_000_000),
    st.just(0.0) | st.floats(0.5, 50),
    st.integers(1, 100_000),
    st.sampled_from([0.0, 0.1]),
)
def test_a_step_is_not_underestimated_for_as_many_rows_as_a_burst_brings(
    seed: int, count: int, startup: int, per_row: float, burst: int, noise: float
) -> None:
    draw = random.Random(seed)
    rows = [draw.randint(0, 20_000) for _ in range(count)]
    took = [(startup + per_row * number) * draw.uniform(1 - noise, 1 + noise) for number in rows]
    runs = [PastRun(0, int(us), number, 0, 1) for us, number in zip(took, rows, strict=True)]
    warehouse = loads(STEPS.replace("node: edge}", f"node: edge, burst: {burst}}}"))
    learned = learned_costs(warehouse, Remembered(runs)).warehouse
    assert unknown_costs(learned) == ()
    true_us = startup + per_row * burst
    for cost_us in PlacedSteps(learned).costs_us.values():
        assert cost_us >= (0.98 - 1.5 * noise) * true_us
        if count >= 40 and noise == 0 and burst <= 20_000:
            assert cost_us <= 1.05 * max(true_us, startup + per_row * median(rows)) + 2


@sampled(100)
@given(st.lists(st.tuples(st.integers(0, 9_999), st.integers(1, 10**7)), min_size=3, max_size=60))
def test_of_a_step_whose_rows_nobody_tells_what_its_runs_took_is_learned(runs: list[tuple[int, int]]) -> None:
    remembered = Remembered([PastRun(0, us, rows, 0, 1) for rows, us in runs])
    learned = learned_costs(loads(STEPS), remembered).warehouse
    assert unknown_costs(learned) == ()
    longer = sum(us > PlacedSteps(learned).costs_us["alerts"] for _, us in runs)
    assert longer <= max(1, len(runs) // 20)
