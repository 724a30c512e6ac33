"""What is planned for continuous queries."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cases import sampled
from freshline.base.duration import MILLISECOND, SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.definitions.load import load, loads
from freshline.definitions.sections.pools import Pool
from freshline.planning.analysis.levels import QueryLoad, is_schedulable
from freshline.planning.analysis.shedding import weighted_error
from freshline.planning.plan.make import make_plan, what_if
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.queries import plan_queries

HEAD = """\
name: table2
pools:
  updates: {tracks: 3}
  answers: {tracks: 1, policy: lrm}
feeds:
  s1: {arrival: continuous, period: 1s, rows: 12500}
  s2: {arrival: continuous, period: 1s, rows: 12500}
  s3: {arrival: continuous, period: 1s, rows: 12500}
tables:
  s1: {feed: s1, pool: updates, slices: {by: k}, cost: {startup: 0.1s}}
  s2: {feed: s2, pool: updates, slices: {by: k}, cost: {startup: 0.1s}}
  s3: {feed: s3, pool: updates, slices: {by: k}, cost: {startup: 0.1s}}
queries:
"""
SELECT = "SELECT * FROM s1 WHERE v > 1"
SELECT_PROJECT = "SELECT k FROM s1 WHERE v > 1"
JOIN = "SELECT s1.* FROM s1 JOIN s2 USING (k)"
JOIN_3 = "SELECT s1.* FROM s1 JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k"
AVG = "SELECT avg(v) AS mean FROM s1"
# Paper 000's Table 2, but for Q9, which projects before it joins.
TABLE_2 = [
    (SELECT, 1, 5), (SELECT, 2, 6), (SELECT_PROJECT, 2, 3), (SELECT_PROJECT, 3, 2), (JOIN, 4, 1),
    (JOIN, 5, 7), (JOIN_3, 5, 8), ("SELECT s1.v FROM s1 JOIN s2 USING (k)", 6, 9), (AVG, 6, 4),
]  # fmt: skip


def query(name: str, sql: str, stride: float, more: str = "") -> str:
    return f"  {name}: {{sql: {sql!r}, window: {stride}s, stride: {stride}s, pool: answers{more}}}\n"


def planned(*queries: str, pool: str = "{tracks: 1, policy: lrm}") -> Plan:
    return make_plan(loads(HEAD.replace("{tracks: 1, policy: lrm}", pool) + "".join(queries)))


def costs_ms(plan: Plan) -> list[float]:
    return [each.load.cost_us / MILLISECOND for each in plan.queries]


def table_2(pool: str) -> Plan:
    queries = [
        query(f"q{number}", sql, stride, f", weight: {weight}, part: 0")
        for number, (sql, stride, weight) in enumerate(TABLE_2, start=1)
    ]
    return planned(*queries, pool=pool)


def test_queries_cost_what_their_operators_do_over_the_rows_of_the_feeds() -> None:
    plan = table_2("{tracks: 1, policy: lrm}")
    assert costs_ms(plan) == [50, 100, 150, 225, 700, 875, 1750, 1350, 300.001]
    assert [each.load.tuples for each in plan.queries][:5] == [12_500, 25_000, 25_000, 37_500, 100_000]
    assert plan.queries[-1].load.fixed_us == 1
    assert plan.pools[1].utilization == pytest.approx(sum(
        each.load.cost_us / each.load.period_us for each in plan.queries
    ))  # fmt: skip


@pytest.mark.parametrize(("policy", "rule_error"), [("lrm", 1.0), ("lrm-paper", 1.2)])
def test_an_overloaded_track_is_in_time_by_shedding(policy: str, rule_error: float) -> None:
    plan = table_2(f"{{tracks: 1, policy: {policy}}}")
    loads_ = [each.load for each in plan.queries]
    budgets_us = [each.budget_us or 0 for each in plan.queries]
    assert plan.holds
    assert not is_schedulable(loads_)
    assert is_schedulable(loads_, budgets_us)
    assert all(each.keep == Fraction(1) or (each.keep or 0) < 1 for each in plan.queries)
    least = table_2("{tracks: 1, policy: lrm}")
    error = weighted_error(loads_, budgets_us)
    least_error = weighted_error(loads_, [each.budget_us or 0 for each in least.queries])
    assert error >= least_error * Fraction(rule_error)


def test_without_shedding_queries_may_be_late_and_the_plan_says_which() -> None:
    preemptive = table_2("{tracks: 1, policy: rm, preemptive: true}")
    assert not preemptive.holds
    assert {each.keep for each in preemptive.queries} == {1}
    assert {each.budget_us for each in preemptive.queries} == {None}
    in_time = [each.name for each in preemptive.queries if each.holds]
    assert in_time[:6] == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert "q8" not in in_time
    assert any(
        sentence.startswith("Query q8 has no bound, and its deadline is 6s") for sentence in preemptive.advice
    )
    # Whoever runs is not put aside: the shortest waits for the longest.
    hpf = table_2("{tracks: 1, policy: rm}")
    assert [each.refusal for each in hpf.queries] == [None] * 9
    assert hpf.queries[0].response_bound_us is None
    assert not hpf.queries[0].holds


def test_enough_tracks_hold_all_without_shedding_by_falling_utilisation() -> None:
    plan = table_2("{tracks: 2, policy: lrm}")
    assert plan.holds
    assert [each.keep for each in plan.queries] == [1] * 9
    # q7 0.35, q8 0.225, q5 and q6 0.175, q3 and q4 0.075, q9 a little above 0.05, q1 and q2
    assert {each.name: each.track for each in plan.queries} == {
        "q7": 0, "q8": 1, "q5": 1, "q6": 0, "q3": 1, "q4": 1, "q9": 0, "q1": 1, "q2": 0,
    }  # fmt: skip


def test_a_query_that_cannot_fit_is_refused_with_the_stride_that_would() -> None:
    greedy = "cost: {startup: 300ms}, part: 0"
    plan = planned(
        query("first", AVG, 1, f", {greedy}"),
        query("second", AVG, 1, f", {greedy}"),
        query("third", AVG, 1, f", {greedy}"),
        query("fourth", AVG, 1, f", {greedy}"),
        query("small", AVG, 1, ", cost: {startup: 10ms}, part: 0"),
    )
    fourth = plan.queries[3]
    assert [each.name for each in plan.queries if each.holds] == ["first", "second", "third", "small"]
    assert fourth.refusal is not None
    assert (fourth.track, fourth.budget_us, fourth.keep, fourth.response_bound_us) == (None, None, None, None)
    assert fourth.refusal.period_least_us is not None
    again = query("fourth", AVG, fourth.refusal.period_least_us / SECOND, f", {greedy}")
    others = [query(name, AVG, 1, f", {greedy}") for name in ("first", "second", "third")]
    assert planned(*others, again).holds
    shorter = query("fourth", AVG, fourth.refusal.period_least_us / SECOND - 0.001, f", {greedy}")
    assert not planned(*others, shorter).holds
    assert any(sentence.startswith("Query fourth is refused: ") for sentence in plan.advice)


def test_a_declared_cost_is_a_fixed_part_and_one_that_grows_with_the_window() -> None:
    (declared,) = planned(query("q", AVG, 2, ", cost: {startup: 100ms, rate: 0.1}, keep_least: 0.5")).queries
    assert (declared.load.cost_us, declared.load.fixed_us, declared.load.least_us) == (
        300 * MILLISECOND,
        100 * MILLISECOND,
        200 * MILLISECOND,
    )
    (worst,) = planned(
        query("q", AVG, 2, ", cost: {startup: 100ms, rate: 0.1, variability: 0.5}, selectivity: 0.01")
    ).queries
    assert (worst.load.cost_us, worst.load.fixed_us) == (450 * MILLISECOND, 150 * MILLISECOND)
    assert (worst.load.selectivity, worst.load.tuples) == (Fraction(1, 100), 25_000)


def test_a_part_is_a_quarter_of_the_shortest_deadline_unless_that_is_declared_or_too_short() -> None:
    plan = planned(
        query("quick", SELECT, 2, ", deadline: 1s"),
        query("slow", SELECT, 10),
        query("costly", AVG, 10, ", cost: {startup: 200ms, rate: 0.1}"),
        query("own", SELECT, 10, ", part: 20ms"),
    )
    assert [each.load.part_us // MILLISECOND for each in plan.queries] == [100, 250, 600, 20]
    whole = planned(query("quick", SELECT, 2), query("slow", SELECT, 10), pool="{tracks: 1, policy: rm}")
    assert [each.load.part_us for each in whole.queries] == [each.load.cost_us for each in whole.queries]


def test_derived_tables_get_all_that_their_sources_do() -> None:
    text = HEAD.replace(
        "queries:\n",
        "  both: {sources: [s1, s2], period: 1s, pool: updates, slices: {}, cost: {startup: 1ms}}\n"
        "  all: {sources: [both, s3], period: 1s, pool: updates, slices: {}, cost: {startup: 1ms}}\n"
        "queries:\n",
    )
    plan = make_plan(loads(text + query("q", "SELECT count(*) AS n FROM `all`", 2)))
    assert plan.queries[0].load.tuples == 3 * 25_000


def test_a_query_over_a_feed_without_rows_needs_a_cost() -> None:
    text = HEAD.replace(
        "  s2: {arrival: continuous, period: 1s, rows: 12500}", "  s2: {arrival: continuous, period: 1s}"
    )
    with pytest.raises(InputError) as raised:
        make_plan(loads(text + query("ours", JOIN, 2)))
    assert str(raised.value) == (
        "freshline.yml:14: no cost is known for the query ours: the rows of s2 are unknown. Add "
        "`rows` (a second) to the feed `s2`, or declare `cost: {startup: 50ms, rate: 0.1}` of the query."
    )
    assert make_plan(loads(text + query("ours", JOIN, 2, ", cost: {rate: 0.1}"))).holds


def test_pools_of_queries_change_nothing_for_tables() -> None:
    text = HEAD.removesuffix("queries:\n")
    alone = make_plan(loads(text))
    beside = table_2("{tracks: 1, policy: lrm}")
    assert (alone.tables, alone.pools[0], alone.advice) == (beside.tables, beside.pools[0], beside.advice)
    assert alone.queries == ()


def test_another_policy_is_for_the_pools_that_can_have_it() -> None:
    warehouse = loads(HEAD + query("q", AVG, 2))
    policies = {
        policy: [pool.policy for pool in what_if(warehouse, policy, {}).pools.values()]
        for policy in ("fifo", "lrm-paper", "rm")
    }
    assert policies == {"fifo": ["fifo", "lrm"], "lrm-paper": ["edf", "lrm-paper"], "rm": ["rm", "rm"]}


@st.composite
def sets_of_loads(draw: st.DrawFn) -> list[QueryLoad]:
    many = []
    for number in range(draw(st.integers(1, 8))):
        period_ms = draw(st.sampled_from([100, 200, 300, 400, 500, 600, 800, 1000, 2000]))
        cost_us = draw(st.integers(1, 2 * period_ms * 1000))
        fixed_us = draw(st.integers(0, cost_us // 2))
        least_us = max(1, draw(st.integers(fixed_us, cost_us)))
        many.append(
            QueryLoad(
                f"q{number}",
                period_ms * 1000,
                draw(st.sampled_from([period_ms, period_ms, period_ms // 2])) * 1000,
                cost_us,
                fixed_us,
                least_us,
                draw(st.sampled_from([0, 30_000, 300_000, 3_000_000])),
                Fraction(draw(st.integers(1, 10))),
                Fraction(draw(st.integers(1, 20)), 20),
                draw(st.integers(1, 100_000)),
            )
        )
    return many


@sampled(200)
@given(sets_of_loads(), st.integers(1, 3), st.sampled_from(["lrm", "lrm-paper", "rm"]))
def test_who_is_admitted_fits_at_least_costs_and_who_is_refused_fits_nowhere(many, tracks, policy) -> None:
    plan = plan_queries(Pool("answers", tracks, policy, preemptive=policy == "rm"), many, {})
    assert [each.name for each in plan.queries] == [load.name for load in many]
    on_tracks = [[each for each in plan.queries if each.track == track] for track in range(tracks)]
    for track in on_tracks:
        loads_ = [each.load for each in track]
        assert is_schedulable(loads_, [load.least_us for load in loads_])
        if policy != "rm":
            assert all(each.holds for each in track)
            assert all(each.budget_us >= each.load.least_us for each in track)
        for each in track:
            assert each.keep is not None
            assert 0 <= each.keep <= 1
            assert each.holds == (
                each.response_bound_us is not None and each.response_bound_us <= each.load.deadline_us
            )
    for each in plan.queries:
        if each.refusal is not None:
            for track in on_tracks:
                names = {each.name, *(other.name for other in track)}
                together = [load for load in many if load.name in names]
                assert not is_schedulable(together, [load.least_us for load in together])


def plan_command(tmp_path: Path, text: str, *options: str) -> tuple[int, str]:
    file = tmp_path / "freshline.yml"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["plan", "-p", str(file), *options])
    return result.exit_code, result.output


def test_the_command_says_all_of_queries_and_nothing_where_there_are_none(tmp_path: Path) -> None:
    code, said = plan_command(tmp_path, HEAD + query("q", AVG, 2, ", part: 0"), "--json")
    record = json.loads(said)
    assert code == 0
    assert record["queries"] == [
        {
            "name": "q", "pool": "answers", "track": 0, "stride": 2.0, "deadline": 2.0, "part": 0.0,
            "cost": 0.100001, "learned_from_answers": 0, "fixed": 1e-06, "budget": 2.0, "keep": 1.0,
            "response_bound": 2.0,
            "holds": True, "reason": None, "period_least": None, "held_back_by": None, "behind": None,
        }
    ]  # fmt: skip
    code, said = plan_command(tmp_path, HEAD.removesuffix("queries:\n"), "--json")
    assert (code, "queries" in json.loads(said)) == (0, False)


def test_the_command_ends_with_1_where_a_query_is_refused_or_may_be_late(tmp_path: Path) -> None:
    refused = HEAD + query("q", AVG, 2, ", cost: {startup: 3s}")
    code, said = plan_command(tmp_path, refused)
    assert code == 1
    assert "1 of 1 refused" in said
    assert "Not in time: 1 of 1 query." in said
    code, said = plan_command(tmp_path, refused, "--json")
    (record,) = json.loads(said)["queries"]
    assert (code, record["holds"], record["keep"], record["period_least"]) == (1, False, None, 3.0)
    assert record["reason"].startswith("even at the least costs, 3s of its own")
    late = HEAD.replace("policy: lrm", "policy: rm") + query("q", AVG, 2, ", cost: {rate: 2}")
    code, said = plan_command(tmp_path, late)
    assert code == 1
    assert "1 of 1 may be late" in said
    assert "Under `rm` that is assumed of every window." in " ".join(said.split())
    assert "whatever comes" not in said


def test_a_stride_that_would_do_is_said_with_the_deadline_that_it_needs(tmp_path: Path) -> None:
    code, said = plan_command(tmp_path, HEAD + query("q", AVG, 2, ", deadline: 100ms, cost: {startup: 1s}"))
    assert code == 1
    assert "a stride of 1s, with a deadline as long, would do" in " ".join(said.split())


def test_a_pool_that_is_wrong_makes_no_table_wrong(tmp_path: Path) -> None:
    head = HEAD.replace("pool: updates, ", "").replace("policy: lrm", "policy: lrm, rescheduling: now")
    with pytest.raises(InputError) as caught:
        loads(head + query("q", AVG, 2))
    assert "rescheduling" in str(caught.value)
    assert "`pool` is missing" not in str(caught.value)


def test_the_example_sheds_and_is_in_time() -> None:
    plan = make_plan(load(Path(__file__).parents[3] / "examples/dashboard/freshline.yml"))
    assert plan.holds
    assert 0 < sum((query.keep or 0) < 1 for query in plan.queries) < len(plan.queries)
    sides = {
        query.name: [side.in_slices for side in query.sides] for query in plan.warehouse.queries.values()
    }
    assert (sides["matched"], sides["all_three"]) == ([True, True], [True, True, False])
