"""Queries over streams in simulated time: costs, what is read by the deadline, and paper 000's comparison."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.queries import Query
from freshline.kernel.queries.membership import QueryAdded
from freshline.kernel.queries.query_spec import QueryMeasure, QuerySpec
from freshline.kernel.queries.rescheduling import Rescheduling
from freshline.simulation.iterations import IterationOutcome
from freshline.simulation.streams import ChangingRate, ConstantRate
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream
from freshline_lab.campaigns.queries.query_sets import answer, random_queries
from freshline_lab.runs.query_run import QueryRun, QueryRunAnswers, simulate_queries

S = SECOND
MS = SECOND // 1000
HALF = Fraction(1, 2)
ONE, OTHER, THIRD = Stream("s1"), Stream("s2"), Stream("s3")
PAIR = Join(HALF, ONE, OTHER)
# Table 2: what, period, weight.
KINDS: list[tuple[Operator, int, int]] = [
    (Select(HALF, ONE), 1, 5),
    (Select(HALF, ONE), 2, 6),
    (Project(Select(HALF, ONE)), 2, 3),
    (Project(Select(HALF, ONE)), 3, 2),
    (PAIR, 4, 1),
    (PAIR, 5, 7),
    (Join(HALF, PAIR, THIRD), 5, 8),
    (Project(PAIR), 6, 9),
    (Join(HALF, Project(ONE), Project(OTHER)), 6, 10),
    (Aggregate(ONE), 6, 4),
]
TABLES = [("s1",)] * 4 + [("s1", "s2")] * 2 + [("s1", "s2", "s3")] + [("s1", "s2")] * 2 + [("s1",)]
TABLE_2 = [
    Query(f"q{place + 1}", "", "p", p * S, p * S, p * S, Fraction(g), tables=tables, operators=what)
    for place, ((what, p, g), tables) in enumerate(zip(KINDS, TABLES, strict=True))
]
POLICIES = {
    "rm": Pool("p", 1, "rm", preemptive=True),
    "hpf": Pool("p", 1, "rm"),
    "lrm-paper": Pool("p", 1, "lrm-paper"),
    "lrm": Pool("p", 1, "lrm"),
}


def error_share(answers: QueryRunAnswers, end: int) -> float:
    due = [outcome for outcome in answers.outcomes if outcome.deadline <= end]
    lost = sum(outcome.error for outcome in due)
    return float(lost / sum(outcome.worth * outcome.tuples for outcome in due))


def answered(policy: str, streams: dict, queries: list[Query] = TABLE_2) -> QueryRunAnswers:
    return simulate_queries(queries, streams, POLICIES[policy], 20 * S)


@pytest.mark.parametrize(("policy", "share"), [("rm", 0.476), ("hpf", 0.484), ("lrm-paper", 0.399)])
def test_the_papers_queries_at_a_steady_rate_lose_what_was_found(policy, share):
    answers = answered(policy, dict.fromkeys(("s1", "s2", "s3"), ConstantRate(12_500)))
    assert error_share(answers, 20 * S) == pytest.approx(share, abs=0.0005)


def test_budgets_lose_half_as_much_and_nobody_is_late():
    answers = answered("lrm", dict.fromkeys(("s1", "s2", "s3"), ConstantRate(12_500)))
    assert error_share(answers, 20 * S) <= 0.23
    assert all(outcome.met for outcome in answers.outcomes)
    assert answers.reschedules == 4  # at 0, 6, 12 and 18 s
    assert {outcome.query for outcome in answers.outcomes} == {query.name for query in TABLE_2}


def test_every_iteration_that_is_due_is_told_of_once_finished_or_not():
    for policy in POLICIES:
        answers = answered(policy, dict.fromkeys(("s1", "s2", "s3"), ConstantRate(40_000)))
        told = [(outcome.query, outcome.released) for outcome in answers.outcomes]
        assert len(told) == len(set(told))
        due = {(q.name, k) for q in TABLE_2 for k in range(0, 20 * S - q.stride_us + 1, q.stride_us)}
        assert due <= set(told)


def test_shares_of_a_burst_are_late_and_budgets_are_not():
    queries = random_queries(3, "optimistic")
    paper = replace(queries, pool=replace(queries.pool, policy="lrm-paper"))
    assert answer(paper, 3).missed
    assert not answer(queries, 3).missed


class Fixed:
    """Every answer costs the same, and a tenth of that is its fixed part."""

    def __init__(self, cost_ms: int) -> None:
        self._cost_us = cost_ms * MS

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        return QueryMeasure(900, self._cost_us, self._cost_us // 10, Fraction(1))


def run(pool: Pool, end: int, **costs_ms: tuple[int, int, int]) -> dict[str, list[IterationOutcome]]:
    """Queries by name: stride in seconds, cost and part in milliseconds."""
    windows = {name: Fixed(cost) for name, (_, cost, _) in costs_ms.items()}
    asked = [
        QuerySpec(name, "p/1", s * S, s * S, s * S, part * MS, windows[name].measure(0, 0))
        for name, (s, _, part) in costs_ms.items()
    ]
    outcomes: list[IterationOutcome] = []
    QueryRun(pool, asked, windows, outcomes.append).driver.run(end)
    return {name: [each for each in outcomes if each.query == name] for name in costs_ms}


def test_a_late_iteration_has_lost_what_it_had_not_read_at_its_deadline():
    seen = run(POLICIES["rm"], 12 * S, a=(2, 1000, 0), b=(5, 4000, 0))
    assert [each.finished for each in seen["a"][:3]] == [S, 3 * S, 5 * S]
    first, second = seen["b"]
    # It runs in the second half of each 2 s: 2 s by its deadline at 5, of which 0.4 s are the fixed part.
    assert (first.finished, first.keep) == (8 * S, 1)
    assert first.unprocessed == 900 * (1 - Fraction(16, 36))
    # The second was released at 5 and begins at 9: 1 s until 10 and 1 s more until the end.
    assert (second.released, second.finished) == (5 * S, None)
    assert second.unprocessed == 900 * (1 - Fraction(6, 36))


def test_a_part_is_ended_before_another_query_runs():
    seen = run(POLICIES["rm"], 4 * S, a=(2, 500, 0), b=(4, 2800, 400))
    assert [each.finished for each in seen["a"]] == [500 * MS, 2600 * MS]  # b's fourth part began at 1.7 s
    assert [each.finished for each in seen["b"]] == [3800 * MS]


def test_without_preemption_an_iteration_runs_to_its_end():
    seen = run(POLICIES["hpf"], 5 * S, a=(2, 500, 0), b=(5, 2800, 400))
    assert [each.finished for each in seen["a"]] == [500 * MS, 3800 * MS, 4500 * MS]


def test_a_query_that_comes_later_is_measured_and_answered():
    windows = {"a": Fixed(500), "b": Fixed(500)}
    asked = [
        QuerySpec(name, "p/1", 2 * S, 2 * S, 2 * S, 0, windows[name].measure(0, 0)) for name in ("a", "b")
    ]
    for at_first in (asked[:1], []):
        outcomes: list[IterationOutcome] = []
        query_run = QueryRun(POLICIES["lrm"], at_first, windows, outcomes.append)
        query_run.driver.tell(5 * S, QueryAdded(asked[1]))
        query_run.driver.run(12 * S)
        assert [each.released for each in outcomes if each.query == "b"] == [6 * S, 8 * S, 10 * S]


rates = st.lists(
    st.tuples(st.integers(1, 5 * S), st.fractions(0, 10**5, max_denominator=1000)), min_size=1, max_size=5
)


@given(rates, st.lists(st.integers(-5 * S, 30 * S), min_size=3, max_size=3))
def test_tuples_of_two_windows_are_those_of_both_and_before_0_the_first_rate_holds(pieces, instants):
    instant, changes = 0, []
    for length, rate in pieces:
        changes.append((instant, rate))
        instant += length
    stream = ChangingRate(changes)
    first, middle, last = sorted(instants)
    assert stream.tuples(first, middle) + stream.tuples(middle, last) == stream.tuples(first, last)
    assert stream.tuples(first, last) >= 0
    constant = ConstantRate(changes[0][1])
    until = pieces[0][0]
    assert stream.tuples(min(first, until), until) == constant.tuples(min(first, until), until)
    ends = [at for at, _ in changes[1:]] + [30 * S]
    begins = [-5 * S] + [at for at, _ in changes[1:]]
    exact = sum(
        rate * max(0, min(last, end) - max(first, begin)) / S
        for begin, end, (_, rate) in zip(begins, ends, changes, strict=True)
    )
    assert abs(stream.tuples(first, last) - exact) < 1


def test_when_it_is_time_to_reschedule():
    optimistic = Rescheduling("optimistic")
    assert optimistic.next_at(0, [2 * S, 6 * S]) == 6 * S
    assert optimistic.next_at(7 * S, [2 * S, 6 * S]) == 12 * S
    assert not optimistic.is_due(Fraction(10**9))
    pessimistic = Rescheduling("pessimistic")
    assert pessimistic.next_at(0, [S]) is None
    assert pessimistic.is_due(Fraction(0))
    permissive = Rescheduling("permissive", Fraction(10))
    assert [permissive.is_due(Fraction(6)) for _ in range(2)] == [False, True]
    permissive.done()
    assert not permissive.is_due(Fraction(10))


def test_what_is_read_in_a_time_and_what_that_costs_go_together():
    rng = Random(1)
    for _ in range(1000):
        cost_us = rng.randint(1, 10**6)
        measure = QueryMeasure(100, cost_us, rng.randrange(cost_us), Fraction(1))
        time_us = rng.randint(1, 2 * cost_us)
        keep = measure.keep_in(time_us)
        assert 0 <= keep <= 1
        assert measure.cost_of(keep) == max(1, measure.fixed_us, min(time_us, cost_us))
