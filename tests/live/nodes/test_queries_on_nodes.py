"""Continuous queries on two nodes: over tables of the other node, steps, and what is computed from them."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from freshline.cli.printing.outputs import with_placement
from freshline.definitions.load import load
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.queries.task import queries_of
from freshline.live.nodes.node_statuses import as_one, read_statuses
from freshline.live.queries.query_work import QueryWork
from freshline.live.queries.result_files import newest
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.status.status import WarehouseStatus
from freshline.planning.plan.make import make_plan
from freshline_lab.campaigns.kills.node_kills import NodesRun
from live_project import START, LiveProject, in_a_thread
from patience import PATIENCE_S, wait_until

COUNTS = "SELECT sensor, count(*) AS n FROM {} GROUP BY sensor"
QUERY = (
    '{name}: {{sql: "{sql}", window: 1h, stride: 2s, pool: {pool}, cost: {{startup: 200ms, loaded: true}}}}'
)
PROJECT = """\
name: plant
nodes: {edge: {}, centre: {}}
pools:
  asked: {tracks: 1, policy: lrm, node: edge}
  far_asked: {tracks: 1, policy: lrm, node: centre}
  exact: {tracks: 1, policy: rm, preemptive: true, node: centre}
  later: {tracks: 1, node: centre}
feeds:
  readings: {path: landing, format: csv, schema: "ts timestamp, sensor string, value long", timestamp: ts, period: 10s, node: edge}
tables:
  readings: {feed: readings, cost: {startup: 300ms, loaded: true}, slices: {by: sensor}}
  high: {sql: "SELECT ts, sensor, value FROM readings WHERE value > 50", node: centre, deadline: 20s, cost: {startup: 300ms, loaded: true}, slices: {by: sensor}}
  highest: {sql: "SELECT ts, sensor, value FROM high WHERE value > 90", pool: later, period: 1s, cost: {startup: 500ms, loaded: true}, slices: {by: sensor}}
queries:
"""  # noqa: E501
# By query: its pool, its table and the values that are in the table.
FAR, STEP, DERIVED, LATE, EXACT = (
    ("far", "far_asked", "readings", -1),
    ("step", "far_asked", "high", 50),
    ("derived", "far_asked", "highest", 90),
    ("added", "asked", "high", 50),
    ("exact", "exact", "readings", -1),
)
TOO_DEAR = 'huge: {sql: "SELECT count(*) AS n FROM readings", window: 1h, stride: 2s, pool: far_asked, cost: {startup: 100s, loaded: true}}'  # noqa: E501


class Plant(LiveProject):
    """Two nodes that run in this process, on one Spark."""

    def __init__(self, folder: Path, spark) -> None:
        super().__init__(folder, spark)
        self.values: list[tuple[str, int]] = []
        self.runners: dict[str, Runner] = {}

    def define(self, *queries: tuple[str, str, str, int], more: str = "") -> None:
        lines = [
            QUERY.format(name=name, sql=COUNTS.format(table), pool=pool) for name, pool, table, _ in queries
        ]
        text = PROJECT + "".join(f"  {line}\n" for line in [*lines, more] if line)
        (self.folder / "freshline.yml").write_text(text, encoding="utf-8")

    def land(self, number: int, count: int = 200) -> None:
        rows = [(f"sensor{each % 17}", each * 7919 % 101) for each in range(count)]
        at = [START + timedelta(seconds=10 * number + place / count) for place in range(count)]
        lines = [
            f"{then.isoformat()},{sensor},{value}" for then, (sensor, value) in zip(at, rows, strict=True)
        ]
        draft = self.folder / "landing" / f".{number}.csv"
        draft.write_text("\n".join(["ts,sensor,value", *lines, ""]), encoding="utf-8")
        draft.rename(draft.with_name(f"{number}.csv"))
        self.values += rows

    @contextmanager
    def both(self) -> Iterator[None]:
        """Both nodes run. The far one begins when there is nothing to follow yet."""
        warehouse = load(self.folder / "freshline.yml")
        with ExitStack() as stack:
            for node in ("centre", "edge"):
                options = RunOptions(session=self.spark, node=node)
                runner = stack.enter_context(
                    Runner(warehouse, self.folder, self.folder / "warehouse", options)
                )
                stack.enter_context(in_a_thread(runner))
                self.runners[node] = runner
            yield

    def expected(self, above: int) -> dict[str, int]:
        return dict(Counter(sensor for sensor, value in self.values if value > above))

    def answer(self, query: str) -> dict[str, int]:
        found = newest(self.layout.controls(["edge", "centre"]), query) or {"rows": []}
        return {row["sensor"]: row["n"] for row in found["rows"]}

    def stored(self, table: str) -> dict[str, int]:
        rows = DeltaTable(self.layout.tables / table).to_pyarrow_table()
        return dict(Counter(rows.column("sensor").to_pylist()))

    def tuples(self, query: str) -> int:
        """The rows of its last window by the last measurement; -1 before the first one."""
        for runner in self.runners.values():
            for task in queries_of(runner.kernel):
                if task.name == query and task.load.tuples != task.asked.measure.tuples:
                    return int(task.load.tuples)
        return -1

    def replayed(self, node: str) -> object:
        *_, log = sorted(self.layout.control(node).logs.glob("*.jsonl"))
        header, *calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        return replay(kernel_of(header), calls, header)[1]


@pytest.fixture
def plant(tmp_path: Path, spark) -> Plant:
    return Plant(tmp_path, spark)


def is_measured(plant: Plant, query: tuple[str, str, str, int]) -> bool:
    """The kernel knows how many rows its window has. The first load may have begun before the window."""
    name, _, _, above = query
    rows = sum(plant.expected(above).values())
    return rows - 2 <= plant.tuples(name) <= rows


@pytest.mark.soak
def test_a_query_reads_what_any_node_writes_and_is_measured_by_its_rows(plant: Plant) -> None:
    measured = (FAR, STEP, DERIVED)
    plant.define(*measured, EXACT)
    with plant.both():
        for number in range(2):
            plant.land(number)
            wait_until(lambda: plant.answer("exact") == plant.expected(-1))
            for query in measured:
                wait_until(lambda query=query: is_measured(plant, query))
        plant.define(*measured, EXACT, LATE)
        apply = plant.runners["edge"].work(QueryWork).serves()["apply"]
        assert apply((plant.folder / "freshline.yml").read_text(encoding="utf-8"))["admitted"] == ["added"]
        wait_until(lambda: is_measured(plant, LATE))
        plant.land(2)
        wait_until(lambda: is_measured(plant, LATE))
    for node in ("edge", "centre"):
        assert plant.replayed(node) is None
    plant.define(EXACT, LATE, more=TOO_DEAR)
    with plant.both():  # again, with tables that are there and a query that another node refuses
        wait_until(lambda: plant.answer("exact") == plant.expected(-1))
        wait_until(lambda: is_measured(plant, LATE))
        assert plant.runners["edge"].work(QueryWork).queries.refusals() == []
        (refused,) = plant.runners["centre"].work(QueryWork).queries.refusals()
        assert refused.startswith("query huge is refused")


def test_a_table_over_a_step_has_the_same_bound_in_a_run_as_in_its_plan(plant: Plant) -> None:
    plant.define(EXACT)
    warehouse = load(plant.folder / "freshline.yml")
    plan = with_placement(make_plan(warehouse), {})
    (planned,) = (table.staleness_bound_us for table in plan.tables if table.name == "highest")
    assert planned is not None

    status = plant.layout.control("centre").status
    with plant.both():
        wait_until(lambda: status.exists() and bool(WarehouseStatus.read(status).tables))
        merged = as_one(warehouse, read_statuses(warehouse, plant.layout))
        for tables in (WarehouseStatus.read(status).tables, merged.tables):
            assert [(row.name, row.staleness_bound_us) for row in tables] == [("highest", planned)]


@pytest.mark.spark
@pytest.mark.soak
def test_a_killed_node_starts_again_and_its_queries_over_other_nodes_answer_again(tmp_path: Path) -> None:
    plant = Plant(tmp_path, None)
    # Queries that are answered in full, however busy the machine is.
    asked = (EXACT, ("exact_step", "exact", "high", 50))
    plant.define(*asked)
    said = tmp_path / "said.txt"
    nodes = NodesRun(tmp_path / "freshline.yml", output=said)

    def is_answered() -> bool:
        return all(plant.answer(name) == plant.expected(above) for name, _, _, above in asked)

    def is_loaded() -> bool:
        tables = {"readings": -1, "high": 50, "highest": 90}
        return all(plant.stored(table) == plant.expected(above) for table, above in tables.items())

    try:
        for number in range(2):
            plant.land(number)
        nodes.wait_until(is_answered, PATIENCE_S)
        before = nodes.status("centre")
        nodes.kill("centre")
        plant.land(2)  # while it is down
        nodes.wait_until(is_answered, PATIENCE_S)
        after = nodes.status("centre")
        plant.land(3)
        nodes.wait_until(is_answered, PATIENCE_S)
        nodes.wait_until(is_loaded, PATIENCE_S)
    finally:
        nodes.stop(PATIENCE_S)
    assert before is not None
    assert after is not None
    assert before.run_id != after.run_id
    assert said.read_text(errors="replace").count("Node centre was killed by signal 9: it restarts") == 1
    assert is_loaded()  # each row once
    assert plant.replayed("centre") is None
