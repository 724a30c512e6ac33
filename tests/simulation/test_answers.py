"""Continuous queries of a warehouse in simulated time: what is observed beside what was planned."""

import io
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cases import sampled
from freshline.base.duration import SECOND
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.planning.plan.make import make_plan
from freshline.simulation.answers import table_streams
from freshline.simulation.simulate import SimulationResult, simulate
from freshline_lab.campaigns.sql.query_statements import QueryStatements

HEAD = """\
name: answers
pools:
  updates: {tracks: 3}
  answers: {tracks: %d, policy: %s}
feeds:
  a: {arrival: continuous, period: 1s, rows: 12500, schema: "ts timestamp, k long, v long", timestamp: ts}
  b: {period: 2s, rows: 7500.5, schema: "ts timestamp, k long, w long", timestamp: ts}
  c: {period: 3s, jitter: 1s, rows: 100, schema: "ts timestamp, j long, x long", timestamp: ts}
tables:
  a: {feed: a, pool: updates, slices: {by: k}, cost: {startup: 0.1s}}
  b: {feed: b, pool: updates, slices: {by: k}, cost: {startup: 0.1s}}
  c: {feed: c, pool: updates, slices: {by: j}, cost: {startup: 0.1s}}
  ab: {sources: [a, b], period: 2s, pool: updates, slices: {}, cost: {startup: 0.1s}}
queries:
"""
POLICIES = [
    "rm", "rm, preemptive: true", "lrm", "lrm, rescheduling: pessimistic", "lrm-paper",
    "lrm, rescheduling: permissive, threshold: 1000", "lrm-paper, rescheduling: pessimistic",
]  # fmt: skip
COUNT = "SELECT count(*) AS n FROM a"


def query(name: str, keys: str, sql: str = COUNT) -> str:
    return f"  {name}: {{sql: {json.dumps(sql)}, pool: answers, {keys}}}\n"


def run(text: str, end: int, **conditions) -> tuple[SimulationResult, list[dict]]:
    log = io.StringIO()
    result = simulate(make_plan(loads(text)), end, journal_to=log, **conditions)
    return result, [json.loads(line) for line in log.getvalue().splitlines()]


@st.composite
def warehouses(draw: st.DrawFn) -> str:
    text = HEAD % (draw(st.integers(1, 2)), draw(st.sampled_from(POLICIES)))
    for number in range(draw(st.integers(1, 5))):
        sql = QueryStatements(draw(st.integers(0, 10**6))).right().sql
        stride = draw(st.sampled_from([1, 2, 3, 4, 5, 6]))
        keys = f"window: {draw(st.sampled_from([1, 2, 6]))}s, stride: {stride}s, "
        keys += f"deadline: {draw(st.integers(500, stride * 1000))}ms, weight: {draw(st.integers(1, 9))}"
        text += query(f"q{number}", keys, sql)
    return text


@sampled(60)
@given(warehouses(), st.booleans())
def test_what_the_plan_says_of_queries_is_what_happens_and_the_journal_replays(
    text: str, crash: bool
) -> None:
    end = 60 * SECOND
    crashes = [(20 * SECOND + 1, 25 * SECOND)] if crash else ()
    result, (header, *calls) = run(text, end, crashes=crashes)
    assert replay(kernel_of(header), calls, header) == (len(calls), None)
    policy = result.plan.warehouse.pools["answers"].policy
    for each in result.queries:
        planned = each.plan
        if planned.refusal is not None:
            assert (each.iterations, each.keep_mean, each.error_share) == (0, None, None)
            continue
        due = (end - planned.load.deadline_us) // planned.load.period_us + 1
        assert each.iterations == due if not crash else each.iterations <= due
        assert each.completed >= each.iterations - each.misses
        assert 0 <= each.keep_mean <= 1
        assert 0 <= each.error_share <= 1
        assert not each.broke_proof
        if planned.holds and policy != "lrm-paper":
            assert each.misses == 0
        if planned.holds and policy == "rm":
            assert each.response_max_us <= planned.response_bound_us
    assert result.holds == (not any(each.misses or each.plan.refusal for each in result.queries))


def test_a_run_counts_what_was_due_by_its_end_and_what_was_lost() -> None:
    # Half of what a comes to fits beside the fixed cost.
    keys = "window: 1s, stride: 1s, cost: {startup: 200ms, rate: 1.6}, part: 0"
    text = HEAD % (1, "lrm") + query("half", keys) + query("long", "window: 1s, stride: 7s, cost: {rate: 0}")
    result, _ = run(text, 20 * SECOND)
    half, long = result.queries
    assert (half.iterations, half.misses, half.completed) == (20, 0, 20)
    assert half.keep_mean == pytest.approx(0.5, abs=1e-5)
    assert half.error_share == pytest.approx(0.5, abs=1e-5)
    assert (long.iterations, long.misses) == (2, 0), "the third is due a second after the end"


@pytest.mark.parametrize("rescheduling", ["optimistic", "pessimistic", "permissive, threshold: 1000000000"])
def test_a_runner_that_is_back_sheds_from_its_start(rescheduling: str) -> None:
    keys = "window: 1s, stride: 1s, cost: {startup: 200ms, rate: 1.6}, part: 0"
    text = HEAD % (1, f"lrm-paper, rescheduling: {rescheduling}") + query("half", keys)
    result, (_, *calls) = run(text, 60 * SECOND, crashes=[(5_500_000, 5_600_000), (20_500_000, 21_500_000)])
    (half,) = result.queries
    assert half.misses == 0
    measured = [call["now"] for call in calls for event in call.get("events", ()) if "measured" in event]
    assert len(measured) == len(set(measured)), "one runner measures at a time"
    assert {0, 5_600_000, 21_500_000} <= set(measured)


def test_without_shedding_late_iterations_run_on_and_count_as_missed() -> None:
    keys = "window: 1s, stride: 1s, cost: {rate: 1.5}"
    result, _ = run(HEAD % (1, "rm") + query("late", keys), 9 * SECOND)
    (late,) = result.queries
    assert (late.iterations, late.misses, late.completed) == (9, 9, 6)
    assert late.keep_mean == 1
    assert not result.holds


def test_an_iteration_whose_cost_is_all_fixed_has_read_nothing_before_it_is_over() -> None:
    fixed, grows = "window: 1s, stride: 5s, cost: {startup: 4s}", "window: 5s, stride: 5s, cost: {rate: 0.5}"
    result, _ = run(HEAD % (1, "rm") + query("grows", grows) + query("fixed", fixed), 5 * SECOND)
    (first, second) = result.queries
    assert (first.misses, second.misses, second.error_share) == (0, 1, 1.0)


def test_the_rows_of_tables_are_their_feeds_and_gaps_have_none() -> None:
    warehouse = loads((HEAD % (1, "lrm")).removesuffix("queries:\n"))
    streams = table_streams(warehouse, {"a": ((0, 2 * SECOND), (5 * SECOND, 6 * SECOND))})
    second = [(streams["a"].tuples(at * SECOND, (at + 1) * SECOND)) for at in range(-1, 7)]
    assert second == [0, 0, 0, 12_500, 12_500, 12_500, 0, 12_500]
    assert streams["b"].tuples(0, 2 * SECOND) == 15_001
    assert streams["ab"].tuples(0, 4 * SECOND) == 2 * 12_500 + 30_002


def test_a_query_reads_up_to_where_its_tables_are() -> None:
    text = HEAD % (1, "rm") + query(
        "q", "window: 5s, stride: 5s", "SELECT count(*) AS n FROM c JOIN b ON b.k = c.j"
    )
    _, (_, *calls) = run(text, 30 * SECOND)
    windows = [
        (start["from"], start["to"])
        for call in calls
        for start in call.get("instructions", ())
        if start.get("start") == "q"
    ]
    assert len(windows) == 7
    assert all(to - since == 5 * SECOND for since, to in windows)
    assert windows[0][1] == 0, "nothing was loaded"
    assert windows[-1][1] <= 28 * SECOND, "files of c come every three seconds, and late"


def test_the_command_says_what_became_of_queries(tmp_path: Path) -> None:
    file = tmp_path / "freshline.yml"
    file.write_text(HEAD % (1, "lrm") + query("q", "window: 2s, stride: 2s, part: 0"), encoding="utf-8")
    done = CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s", "--json"])
    record = json.loads(done.output)
    assert done.exit_code == 0
    (asked,) = record["queries"]
    measured = {"iterations": 10, "misses": 0, "completed": 10, "keep_mean": 1.0, "error_share": 0.0}
    assert {key: asked[key] for key in measured} == measured
    assert asked["response_max"] == 0.100001
    assert CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s"]).output.count("in time") == 1
    late = CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s", "--policy", "rm", "--json"])
    assert late.exit_code == 0
    file.write_text(
        HEAD % (1, "rm") + query("q", "window: 2s, stride: 2s, cost: {rate: 1.5}"), encoding="utf-8"
    )
    late = CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s"])
    assert late.exit_code == 1
    assert "Missed: deadlines of 1 of the queries." in late.output


def test_a_warehouse_without_queries_is_simulated_as_ever(tmp_path: Path) -> None:
    file = tmp_path / "freshline.yml"
    file.write_text((HEAD % (1, "lrm")).removesuffix("queries:\n"), encoding="utf-8")
    done = CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s", "--json"])
    assert done.exit_code == 0
    assert "queries" not in json.loads(done.output)


def test_a_slow_query_reads_less_under_lrm_and_is_late_without_shedding(tmp_path: Path) -> None:
    """Answers cost 0.4 s, and three times as much: 1.2 s in every second."""
    keys = "window: 1s, stride: 1s, cost: {rate: 0.4}, part: 0"
    found = {}
    for policy in ("lrm", "rm"):
        text = HEAD % (1, policy) + query("slow", keys)
        for factor in (1, 3):
            result, (header, *_) = run(text, 20 * SECOND, slow={"slow": Fraction(factor)})
            found[policy, factor] = result.queries[0]
            assert header["slow"] == {"slow": str(factor)}
            assert all(table.asserted_max_us == table.staleness_max_us for table in result.tables)
    assert [found["lrm", factor].misses for factor in (1, 3)] == [0, 0]
    assert found["lrm", 1].keep_mean == 1
    assert found["lrm", 3].keep_mean == pytest.approx(5 / 6, abs=0.01)
    assert found["rm", 1].misses == 0
    assert found["rm", 3].misses == 20
    file = tmp_path / "freshline.yml"
    file.write_text(text, encoding="utf-8")
    said = CliRunner().invoke(app, ["simulate", "-p", str(file), "--for", "20s", "--slow", "slow:3"])
    assert "Query slow: costs multiplied by 3." in said.output
