"""What several nodes tell of themselves, put together; and how old rows were."""

import io
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from freshline.base.latency_histogram import LatencyHistogram
from freshline.definitions.load import loads
from freshline.live.nodes.node_statuses import as_one, together
from freshline.live.nodes.step_status import OutputStatus, PlacementStatus, StepStatus
from freshline.live.status.status import Progress, TrackStatus, WarehouseStatus
from freshline.live.status.view import render
from freshline.planning.plan.outputs import plan_outputs
from freshline.planning.plan.step_recovery import StepRecovery

S = 1_000_000


def status(node: str, at_s: int, steps: tuple[StepStatus, ...], outputs=()) -> WarehouseStatus:
    track = TrackStatus(0, node, None, None)
    return WarehouseStatus(
        "alerts",
        "run",
        "host",
        1,
        at_s * S,
        S,
        (track,),
        ("slow",),
        2,
        node=node,
    ).changed(steps=steps, outputs=outputs)


READ = StepStatus("readings", "edge", 2 * S, 0, 1, 40, 3, 5 * S)
ALERT = StepStatus("alerts", "centre", 3 * S, 2, 0, 7, 0, 5 * S)
OUT = OutputStatus("alerts", "centre", 10 * S, 7, 1, 2 * S, 8 * S, 12 * S)


def test_nodes_are_told_of_as_one_and_late_records_are_misses_of_each_output() -> None:
    placement = PlacementStatus(1.5, (("alerts", "so"),), ("readings",), ("deadlines are stretched",))
    nodes = [
        status("centre", 20, (ALERT,), (OUT,)).changed(placement=(placement,)),
        status("edge", 21, (READ,)),
    ]
    merged = together(nodes, ["readings", "alerts"], {"alerts": ["readings"]})
    assert WarehouseStatus.from_json(merged.to_json()) == merged
    assert (merged.node, merged.at_us, merged.quarantined) == (None, 21 * S, 2)
    assert merged.broken_assumptions == ("centre: slow", "edge: slow")
    assert [track.number for track in merged.tracks] == [0, 1]
    record = merged.record(21 * S)
    assert record["steps"] == [
        {
            "name": "readings",
            "node": "edge",
            "sub_deadline": 2.0,
            "misses": 0,
            "backlog": 1,
            "rows": 40,
            "rows_late": 3,
            "rows_shed": 0,
            "freshness": "1970-01-01T00:00:05.000000+00:00",
            "last_error": None,
            "late_warning": None,
            "recovering": False,
            "files_waiting": 0,
        },
        {
            "name": "alerts",
            "node": "centre",
            "sub_deadline": 3.0,
            "misses": 2,
            "backlog": 0,
            "rows": 7,
            "rows_late": 0,
            "rows_shed": 0,
            "freshness": "1970-01-01T00:00:05.000000+00:00",
            "last_error": None,
            "late_warning": None,
            "recovering": False,
            "files_waiting": 0,
        },
    ]
    assert record["outputs"] == [
        {
            "name": "alerts",
            "node": "centre",
            "deadline": 10.0,
            "rows": 7,
            "misses": 4,
            "latency": {"p50": 2.0, "p95": 8.0, "max": 12.0},
            "recovering": False,
            "files_waiting": 0,
            "recovery_due": None,
        }
    ]
    unproven = [{"output": "alerts", "reason": "so"}]
    assert record["placement"] == {"stretch": 1.5, "unproven": unproven, "assumed": ["readings"]}
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(render(merged, 21 * S))
    shown = [line.split() for line in screen.export_text().splitlines()]
    assert ["alerts", "centre", "10s", "7", "4", "2s", "8s", "12s"] in shown
    assert ["readings", "edge", "2s", "0", "1", "40", "3"] in shown
    assert ["Deadlines", "are", "stretched."] in shown


def test_of_a_start_it_is_said_whose_it_is() -> None:
    nodes = [
        status("edge", 20, (READ,)),
        replace(status("centre", 21, ()), starting=Progress("warming up", 1, 2)),
    ]
    merged = together(nodes, ["readings", "alerts"], {"alerts": ["readings"]})
    assert str(merged.starting) == "node centre: warming up, 1 of 2"


def test_what_has_moved_to_another_node_is_told_by_who_told_last_and_what_is_gone_by_nobody() -> None:
    moved, gone = replace(ALERT, node="edge", misses=0), replace(READ, name="raw")
    nodes = [
        status("edge", 30, (READ, moved), (replace(OUT, node="edge", rows=9),)),
        status("centre", 20, (gone, ALERT), (OUT, replace(OUT, name="raw"))),
    ]
    merged = together(nodes, ["readings", "alerts"], {"alerts": ["readings"]})
    assert merged.steps == (READ, moved)
    assert merged.outputs == (replace(OUT, node="edge", rows=9, misses=OUT.misses + READ.rows_late),)


TWO = """
name: two
nodes: {edge: {}, centre: {}}
feeds:
  raw: {period: 5s, burst: 10, node: edge, schema: "ts timestamp", timestamp: ts, path: raw, format: csv}
tables:
  readings: {feed: raw, node: edge, cost: {startup: 500ms}}
  alerts: {sql: "SELECT ts FROM readings", node: centre, cost: {startup: 500ms}, deadline: 6s}
"""


def test_an_output_on_another_node_shows_how_many_files_wait_and_the_promised_end() -> None:
    warehouse = loads(TWO)
    placed = plan_outputs(warehouse).placed
    assert placed is not None
    placement = PlacementStatus.of(placed)
    late = replace(READ, recovering=True, files_waiting=38, backlogs=((10 * S, 11 * S, 60),))
    nodes = [
        status("centre", 20, (ALERT,), (OUT,)).changed(placement=(placement,)),
        status("edge", 20, (late,)),
    ]
    merged = as_one(warehouse, nodes)
    assert WarehouseStatus.from_json(merged.to_json()) == merged
    promised = StepRecovery(warehouse, placed).promises_us({"raw": 60}, S)["alerts"]
    assert promised is not None
    (output,) = merged.record(20 * S)["outputs"]
    assert (output["recovering"], output["files_waiting"]) == (True, 38)
    assert output["recovery_due"] == (10 * S + promised - 20 * S) / S
    (line,) = merged.recoveries
    assert line.startswith("alerts: recovering, over in at most ")
    assert line.endswith("; 38 files of raw wait")
    # After a restart nothing is promised; and what has recovered is not told of.
    caught_up = as_one(warehouse, [nodes[0], status("edge", 20, (replace(late, catching_up=True),))])
    assert caught_up.recoveries == ("alerts: recovering; 38 files of raw wait",)
    assert as_one(warehouse, [nodes[0], status("edge", 20, (READ,))]).recoveries == ()


@given(st.lists(st.integers(-5, 10**9), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 1.0]))
def test_a_quantile_is_right_to_a_hundredth(latencies: list[int], share: float) -> None:
    seen = LatencyHistogram()
    for part in (latencies[::2], latencies[1::2]):
        seen.add(np.array(part, np.int64))
    exact = sorted(max(1, each) for each in latencies)[int(np.ceil(share * len(latencies))) - 1]
    found = seen.quantile_us(share)
    assert found is not None
    assert exact <= found + 1
    assert found <= 1.011 * exact + 1
    assert (seen.rows, seen.max_us) == (len(latencies), max(1, *latencies))


def test_of_no_row_nothing_is_known() -> None:
    seen = LatencyHistogram()
    seen.add(np.array([], np.int64))
    assert (seen.rows, seen.max_us, seen.quantile_us(0.5)) == (0, None, None)
