"""Which outputs of a warehouse hold: what is left of deadlines, when bursts recur, what is not known."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.duration import MILLISECOND, SECOND
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.shed import Shed
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import judge_outputs, plan_outputs, with_outputs
from freshline.planning.plan.placed_steps import PlacedSteps, placement_plan, unknown_costs
from freshline.planning.plan.step_placement import StepPlacement
from freshline.simulation.simulate import simulate

TEXT = """
name: alerts
nodes: {edge: {}, centre: {speed: 2}}
links: [[edge, centre]]
feeds:
  speeds: {period: 10s, jitter: 1s, node: edge, burst: 20, age: 1s}
tables:
  readings: {feed: speeds, cost: {startup: 100ms, per_row: 1ms}}
  fast: {sources: [readings], selectivity: 0.5, cost: {startup: 100ms, per_row: 100ns, variability: 0.5}}
  alerts: {sources: [fast], deadline: 5s, node: centre, cost: {startup: 200ms}}
"""


def steps(*changes: tuple[str, str]) -> PlacedSteps:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return PlacedSteps(loads(text))


def test_a_step_costs_what_it_costs_at_worst_for_the_rows_that_reach_it() -> None:
    assert steps().costs_us == {
        "readings": 120 * MILLISECOND,
        "fast": 150_003,  # (100 ms + 20 x 100 ns) x 1.5
        "alerts": 200 * MILLISECOND,
    }


SHED = ("age: 1s}", 'age: 1s, shed: {most: 4, per: 1s, value: "speed"}}')


def test_a_feed_that_sheds_is_read_whole_and_brings_no_more_than_its_windows_have() -> None:
    by_rows = ("cost: {startup: 200ms}", "cost: {per_row: 10ms}")
    # Records of a second are of two windows: 8 of 20 rows, half of which are fast.
    assert steps(SHED, by_rows).costs_us["alerts"] == 4 * 10 * MILLISECOND
    assert steps(SHED, by_rows).costs_us["readings"] == 120 * MILLISECOND
    assert steps(by_rows).costs_us["alerts"] == 10 * 10 * MILLISECOND
    # Where no age is said they may be of a period, which is no more than there are.
    assert steps(SHED, by_rows, ("age: 1s, ", "")).costs_us["alerts"] == 10 * 10 * MILLISECOND


def test_how_many_rows_come_is_known_of_what_is_computed_from_a_feed_that_sheds() -> None:
    text = TEXT.replace(*SHED).replace("burst: 20, ", "")
    assert unknown_costs(loads(text)) == ("readings",)
    assert unknown_costs(loads(text.replace(", per_row: 1ms", ""))) == ()


@given(st.integers(1, 5), st.integers(1, 7), st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=12))
def test_no_file_brings_more_rows_than_are_reckoned_with(most: int, per: int, ages: list[list[int]]) -> None:
    feed = Feed("f", "files", 10 * SECOND, age_us=9 * SECOND, shed=Shed(most, per * SECOND, "v"))
    seen: Counter[int] = Counter()
    for number, file in enumerate(ages):
        loaded = 0
        for at in sorted(10 * (number + 1) - age for age in file):
            loaded += seen[at // per] < most
            seen[at // per] += seen[at // per] < most
        assert feed.rows_most_loaded is not None
        assert loaded <= feed.rows_most_loaded


def test_a_node_is_blocked_by_its_longest_step_and_by_a_hop_where_links_lead_to_it() -> None:
    found = steps()
    assert (found.blocking_us("edge"), found.blocking_us("centre")) == (150_003, 100_000 + 150_000)


@pytest.mark.parametrize(
    ("change", "left_s"),
    [
        (("age: 1s", "age: 1s"), 4),
        (("age: 1s", "age: 1s, lateness: 500ms"), Fraction(-15, 2)),  # and the next file
        (("node: centre, cost", "node: centre, align: 2s, cost"), -8),  # a file later, for age < period
    ],
)
def test_what_is_left_of_a_deadline(change: tuple[str, str], left_s: Fraction) -> None:
    assert steps(change).left_us("alerts") == left_s * SECOND


def test_with_several_feeds_the_slowest_ones_next_file_is_waited_for() -> None:
    found = steps(
        ("age: 1s}", "age: 1s}\n  plates: {period: 1s, node: edge, burst: 1, age: 3s}"),
        ("  fast:", "  known: {feed: plates, cost: {startup: 1ms}}\n  fast:"),
        ("[readings]", "[readings, known]"),
        ("deadline: 5s", "deadline: 20s"),
    )
    assert found.left_us("alerts") == (20 - 3 - 11) * SECOND


def test_an_output_holds_with_its_nodes_and_sub_deadlines() -> None:
    found = plan_outputs(loads(TEXT))
    (output,) = found.outputs
    assert (output.name, output.deadline_us, output.holds, output.node) == (
        "alerts",
        5 * SECOND,
        True,
        "centre",
    )
    assert output.sub_deadlines_us.keys() == {"readings", "fast", "alerts"}
    assert sum(output.sub_deadlines_us.values()) <= 4 * SECOND
    assert output.slack_us is not None
    assert output.slack_us > 0
    assert found.placed is not None
    assert StepPlacement.from_record(json.loads(json.dumps(found.placed.record()))) == found.placed


def test_an_output_whose_bursts_come_too_fast_is_not_proven() -> None:
    (output,) = plan_outputs(loads(TEXT.replace("period: 10s", "period: 2s"))).outputs
    assert not output.holds
    assert output.reason is not None
    assert "may still be busy with a burst for fast when the next comes" in output.reason


def test_sub_deadlines_are_shorter_than_the_deadline_allows_if_bursts_would_meet_otherwise() -> None:
    usual, soon = (
        with_outputs(make_plan(warehouse), plan_outputs(warehouse))
        for warehouse in (loads(TEXT), loads(TEXT.replace("period: 10s", "period: 3s")))
    )
    sums = [sum(plan.outputs[0].sub_deadlines_us.values()) for plan in (usual, soon)]
    assert sums[1] < 2 * SECOND < sums[0] <= 4 * SECOND
    assert soon.outputs[0].holds
    result = simulate(soon, 1200 * SECOND, 1)
    assert not any(output.misses for output in result.outputs)
    assert not any(step.misses for step in result.steps)
    # A run that keeps this placement comes to the same verdict.
    assert soon.placed is not None
    assert judge_outputs(soon.warehouse, soon.placed).outputs[0].holds


def test_first_in_first_out_is_not_proven() -> None:
    (output,) = plan_outputs(loads(TEXT.replace("speed: 2", "speed: 2, policy: fifo"))).outputs
    assert (output.holds, output.reason) == (False, "no bound is proven for `policy: fifo` on `centre`")


def test_a_deadline_below_the_computing_time_is_a_verdict_with_a_stretched_placement() -> None:
    found = plan_outputs(loads(TEXT.replace("deadline: 5s", "deadline: 1100ms")))
    assert not found.outputs[0].holds
    assert found.placed is not None
    assert found.placement is not None
    assert found.placement.status == "infeasible"


def test_a_deadline_that_is_over_before_anything_is_computed_is_a_verdict() -> None:
    (output,) = plan_outputs(loads(TEXT.replace("deadline: 5s", "deadline: 500ms"))).outputs
    assert (output.holds, output.reason) == (
        False,
        "its records may be 1s old before anything is computed from them",
    )


def test_unknown_costs_are_named() -> None:
    without = loads(TEXT.replace(", cost: {startup: 200ms}", "").replace("burst: 20, ", ""))
    assert unknown_costs(without) == ("readings", "fast", "alerts")
    assert plan_outputs(without).outputs[0].reason == (
        "no cost is known for alerts (run it, or declare `cost`); the number of rows is unknown for "
        "readings, fast (declare `burst`, or `rows`, of speeds)"
    )


def test_a_projects_operators_are_its_tables() -> None:
    plan = placement_plan(steps())
    assert [(each.name, each.inputs, each.nodes) for each in plan.operators] == [
        ("readings", ("feed speeds",), ("edge",)),
        ("fast", ("readings",), None),
        ("alerts", ("fast",), ("centre",)),
    ]
    assert plan.links == (("edge", "centre"),)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(TEXT)
    return file


def test_the_commands_show_outputs_and_end_as_the_verdict_is(project: Path) -> None:
    runner = CliRunner()
    planned = runner.invoke(app, ["plan", "-p", str(project), "--json"])
    assert planned.exit_code == 0
    (output,) = json.loads(planned.stdout)["outputs"]
    keys = {"name", "deadline", "holds", "node", "sub_deadlines", "slack", "reason", "assumes"}
    assert output.keys() == keys
    placed = runner.invoke(app, ["place", "-p", str(project), "--json"])
    assert placed.exit_code == 0
    assert json.loads(placed.stdout)["placement"]["readings"] == "edge"
    simulated = runner.invoke(app, ["simulate", "-p", str(project), "--for", "10m", "--json"])
    assert simulated.exit_code == 0, simulated.output
    record = json.loads(simulated.stdout)
    assert [(each["name"], each["misses"]) for each in record["outputs"]] == [("alerts", 0)]
    assert record["outputs"][0]["rows"] > 500
    assert 0 < record["outputs"][0]["latency"]["p50"] <= record["outputs"][0]["latency"]["max"] <= 5
    assert [each["backlog"] for each in record["steps"]] == [0, 0, 0]
    project.write_text(TEXT.replace(", cost: {startup: 200ms}", ""))
    for command in ("plan", "place", "simulate"):
        assert runner.invoke(app, [command, "-p", str(project)]).exit_code == 1


def test_a_table_that_reads_a_step_is_bounded_where_outputs_hold(project: Path) -> None:
    project.write_text(
        (
            TEXT.replace("feeds:", "pools: {later: {tracks: 1, node: centre}}\nfeeds:")
            + "  counts: {sources: [readings], period: 20s, cost: {startup: 1s}}\n"
        ).replace("cost: {", "cost: {loaded: true, ")
    )
    record = json.loads(CliRunner().invoke(app, ["plan", "-p", str(project), "--json"]).stdout)
    (table,) = record["tables"]
    # The file after next is 11 s later, readings have D, and counts as ever twice its period.
    (until,) = (
        each["seconds"] for each in record["outputs"][0]["sub_deadlines"] if each["operator"] == "readings"
    )
    assert table["staleness_bound"] == pytest.approx(11 + until + 20 + 20)
    assert (table["holds"], record["advice"]) == (True, [])


def test_an_output_is_not_proven_where_others_keep_its_node_busy() -> None:
    """Bursts of another feed come before the last is over, on a node that this output runs on as well."""
    feed = "  ticks: {period: 500ms, node: edge, burst: 1}"
    step = "  ticks: {feed: ticks, deadline: 4s, cost: {startup: 600ms}}"
    text = TEXT.replace("tables:", f"{feed}\ntables:\n{step}")
    found = {output.name: output for output in plan_outputs(loads(text)).outputs}
    assert {name: output.holds for name, output in found.items()} == {"ticks": False, "alerts": False}
    assert str(found["alerts"].reason).startswith("node edge may still be busy with a burst for ticks")
