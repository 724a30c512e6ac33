"""A node that crashes alone: its jobs stop and start again, and the others go on."""

import io
import json
from pathlib import Path

import pytest

from commands import freshline
from freshline.base.duration import MINUTE, SECOND
from freshline.base.errors import InputError
from freshline.cli.what_if import crash_options
from freshline.definitions.load import loads
from freshline.kernel.assembly.node_kernels import NodeKernels
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.validation import validate
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.simulated_run import SimulatedRun

S = SECOND
# The edge loads `raw`, the centre makes an output of it; `alone` is loaded in the centre.
TWO = """
name: two
nodes: {edge: {}, centre: {}}
pools: {dash: {tracks: 1, node: centre}}
feeds:
  raw: {period: 5s, burst: 100, node: edge}
  other: {period: 5s, phase: 1s, burst: 100, node: centre}
tables:
  readings: {feed: raw, node: edge, cost: {startup: 500ms}}
  alerts: {sources: [readings], node: centre, cost: {startup: 500ms}, deadline: 6s}
  alone: {feed: other, node: centre, cost: {startup: 200ms}, deadline: 4s}
  shown: {sources: [alerts], pool: dash, period: 10s, cost: {startup: 300ms}}
"""


def planned(text: str = TWO) -> Plan:
    warehouse = loads(text)
    outputs = plan_outputs(warehouse)
    return with_outputs(make_plan(warehouse, {}, outputs.placed), outputs)


def crashing(node: str, *spans: tuple[int, int]) -> tuple[SimulationResult, dict, list[dict]]:
    log = io.StringIO()
    crashes = {node: [(start * S, back * S) for start, back in spans]}
    result = simulate(planned(), 20 * MINUTE, 1, node_crashes=crashes, journal_to=log)
    header, *calls = (json.loads(line) for line in log.getvalue().splitlines())
    return result, header, calls


def starts(calls: list[dict], step: str) -> list[int]:
    return [
        call["now"] for call in calls for each in call.get("instructions", ()) if each.get("start") == step
    ]


def test_only_jobs_of_the_node_stop_and_all_files_are_loaded_when_it_is_back() -> None:
    _, header, calls = crashing("edge", (301, 420))
    assert header["node_crashes"] == {"edge": [[301 * S, 420 * S]]}
    between = [at for at in starts(calls, "readings") if 301 * S <= at < 420 * S]
    assert between == []
    others = [at for at in starts(calls, "alone") if 301 * S <= at < 420 * S]
    assert len(others) == 24  # one every 5 s, as before
    (back,) = (call for call in calls if any("node_started" in event for event in call.get("events", ())))
    (start,) = (each for each in back["instructions"] if each["start"] == "readings")
    # Its first job is for a file that came when it was down, or before.
    assert back["now"] == 420 * S
    assert start["parts"][0]["to"] <= 305 * S
    usual = {output.name: output.rows for output in simulate(planned(), 20 * MINUTE, 1).outputs}
    result, _, _ = crashing("edge", (301, 420))
    assert {output.name: output.rows for output in result.outputs} == usual
    assert replay(kernel_of(header), calls, header) == (len(calls), None)


def test_a_job_that_runs_is_lost_and_done_again() -> None:
    plan, log = planned(), io.StringIO()
    simulate(plan, 20 * MINUTE, 1, node_crashes={"edge": [(300 * S + S // 4, 310 * S)]}, journal_to=log)
    jobs = [
        (call["now"], each["parts"][0]["from"])
        for call in map(json.loads, log.getvalue().splitlines()[1:])
        for each in call.get("instructions", ())
        if each["start"] == "readings"
    ]
    assert [at // S for at, _ in jobs if 295 * S <= at < 320 * S] == [295, 300, 310, 310, 315]
    lost, again = (next(job for job in jobs if job[0] == at * S) for at in (300, 310))
    assert lost[1] == again[1]


def test_an_output_that_the_node_does_not_delay_stays_proven_and_in_time() -> None:
    text = TWO.replace(
        "node: centre, cost: {startup: 500ms}, deadline", "node: edge, cost: {startup: 500ms}, deadline"
    )
    plan = planned(text)
    assert all(output.holds for output in plan.outputs)
    result = simulate(plan, 20 * MINUTE, 1, node_crashes={"edge": [(301 * S, 420 * S)]})
    late, alone = result.outputs
    assert late.misses > 0
    assert not late.broke_proof
    assert (alone.name, alone.misses, alone.broke_proof) == ("alone", 0, False)
    # A crash of its own node excuses it too.
    result = simulate(plan, 20 * MINUTE, 1, node_crashes={"centre": [(301 * S, 420 * S)]})
    late, alone = result.outputs
    assert (late.misses, alone.misses > 0, alone.broke_proof) == (0, True, False)


def test_a_node_can_crash_twice_beside_another_and_beside_the_runner() -> None:
    plan = planned()
    spans = {"edge": [(100 * S, 160 * S), (400 * S, 400 * S)], "centre": [(130 * S, 200 * S)]}
    log = io.StringIO()
    result = simulate(plan, 20 * MINUTE, 1, node_crashes=spans, crashes=[(600 * S, 630 * S)], journal_to=log)
    assert all(step.backlog <= 1 for step in result.steps)
    header, *calls = (json.loads(line) for line in log.getvalue().splitlines())
    assert replay(kernel_of(header), calls, header) == (len(calls), None)
    run = SimulatedRun(plan, 1, checked(plan.warehouse, 20 * MINUTE, node_crashes=spans))
    run.run(20 * MINUTE)
    assert isinstance(run.kernel, NodeKernels)
    validate(run.kernel)
    for node in plan.warehouse.nodes:
        validate(run.kernel.of(node))


def test_the_command_takes_the_name_of_a_node(tmp_path: Path) -> None:
    assert crash_options(["1h", "edge:2h", "3h:5m", "edge:4h:1m"]) == (
        [(60 * MINUTE, 60 * MINUTE + 10 * S), (180 * MINUTE, 185 * MINUTE)],
        {"edge": [(120 * MINUTE, 120 * MINUTE + 10 * S), (240 * MINUTE, 241 * MINUTE)]},
    )
    (tmp_path / "freshline.yml").write_text(TWO, encoding="utf-8")
    command = ["simulate", "-p", tmp_path, "--for", "20m", "--crash"]
    shown = freshline(*command, "edge:5m:2m")
    assert "Node edge was down: 5m to 7m." in shown.stdout
    told = json.loads(freshline(*command, "edge:5m:2m", "--json").stdout)
    assert told["node_crashes"] == [{"node": "edge", "start": 300.0, "end": 420.0}]
    assert told["crashes"] == []
    wrong = freshline(*command, "edgy:5m")
    assert wrong.returncode == 2
    assert "the node `edgy`, which is to crash, does not exist" in wrong.stderr
    assert freshline(*command, "edge:soon").returncode == 2


@pytest.mark.parametrize(
    ("crashes", "node_crashes", "words"),
    [
        ([], {"edge": [(0, 5)]}, "the crash at 0s does not lie within the run"),
        ([(10, 20)], {"edge": [(20, 30)]}, "the crash of edge at 20s meets one of the runner"),
        ([(10, 20)], {"edge": [(5, 10)]}, "the crash of edge at 5s meets one of the runner"),
    ],
)
def test_a_crash_of_a_node_that_cannot_be_is_bad_input(crashes, node_crashes, words) -> None:
    def in_us(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(start * S, back * S) for start, back in spans]

    by_node = {node: in_us(spans) for node, spans in node_crashes.items()}
    with pytest.raises(InputError, match=words):
        checked(loads(TWO), 100 * S, crashes=in_us(crashes), node_crashes=by_node)


def test_without_nodes_none_can_crash() -> None:
    one = "name: one\npools: {p: {tracks: 1}}\nfeeds: {f: {period: 5s}}\n"
    one += "tables: {t: {feed: f, cost: {startup: 1s}}}"
    with pytest.raises(InputError, match="the node `edge`, which is to crash, does not exist"):
        checked(loads(one), 100 * S, node_crashes={"edge": [(10 * S, 20 * S)]})
