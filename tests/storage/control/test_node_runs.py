"""What jobs took on one node, as the others hear of it."""

from fractions import Fraction
from pathlib import Path

from freshline.definitions.load import loads
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.learned import learned_costs
from freshline.storage.control.node_runs import RUNS_TOLD, NodeRuns, tell_runs

FILE = """
name: sensors
storage: warehouse
nodes: {edge: {}, centre: {}}
feeds:
  readings: {path: in, format: csv, schema: "ts TIMESTAMP, n INT", timestamp: ts, period: 1s, node: edge,
    burst: 2000}
tables:
  readings: {feed: readings}
  alerts: {sql: "SELECT ts, n FROM readings", deadline: 10s, cost: {startup: 1s}}
"""


def test_what_was_told_is_heard_and_what_is_damaged_is_not(tmp_path: Path) -> None:
    runs = [PastRun(number, 100, 10, 5, 1) for number in range(RUNS_TOLD + 5)]
    tell_runs(tmp_path / "edge.json", {"readings": runs})
    (tmp_path / "centre.json").write_text('{"alerts": ')
    told = NodeRuns([tmp_path / "edge.json", tmp_path / "centre.json", tmp_path / "none.json"])
    assert told.runs("readings") == runs[-RUNS_TOLD:]
    assert told.runs("alerts") == []


def test_what_a_step_costs_is_learned_by_its_rows_where_it_is_not_declared(tmp_path: Path) -> None:
    sizes = enumerate(range(100, 2_000, 50))
    runs = [PastRun(number, 20_000 + 100 * rows, rows, 0, 1) for number, rows in sizes]
    tell_runs(tmp_path / "edge.json", {"readings": runs, "alerts": runs})
    learned = learned_costs(loads(FILE), NodeRuns([tmp_path / "edge.json"]))
    cost = learned.warehouse.steps["readings"].cost
    assert cost is not None
    assert learned.runs == {"readings": len(runs)}
    assert (cost.rate, cost.per_row_us) == (0, Fraction(100))
    assert 19_000 <= cost.startup_us <= 21_000
    declared = learned.warehouse.steps["alerts"].cost
    assert declared is not None
    assert (declared.startup_us, declared.per_row_us) == (1_000_000, 0)
