"""Queries that come and go in a run, on a real kernel in simulated time, without Spark."""

import io
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.queries import Query
from freshline.definitions.serial import to_record
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.events import Start
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.queries.events import IterationFinished
from freshline.kernel.queries.task import queries_of
from freshline.live.queries.known_costs import QueryMeasurer
from freshline.live.queries.live_queries import LiveQueries
from freshline.live.queries.window_rows import WindowRows
from freshline.live.tables.node_share import all_of
from freshline.planning.analysis.levels import is_schedulable
from freshline.planning.plan.make import make_plan
from freshline.storage.control.history import History

PROJECT = """\
name: shop
pools:
  updates: {tracks: 1}
  shedding: {tracks: 2, policy: lrm}
  plain: {tracks: 1, policy: rm}
feeds:
  orders: {period: 10s, schema: "ts timestamp, item string", timestamp: ts}
tables:
  orders: {feed: orders, pool: updates, cost: {startup: 5s}, slices: {by: item}}
queries:
  one: {sql: "SELECT count(*) AS n FROM orders", window: 1h, stride: 4s, pool: shedding, cost: {startup: 1s}}
"""
WAREHOUSE = loads(PROJECT)


@dataclass(frozen=True)
class Prepared:
    """A prepared query without Spark's analysis, which these tests do not need."""

    query: Query


class Run:
    """A run's queries: iterations take what they are allowed, and end at once when time goes on."""

    def __init__(self, history: History) -> None:
        plan = make_plan(WAREHOUSE)
        self.now = 1_000 * SECOND
        self.kernel = assemble(plan, self.now, {"orders": self.now})
        self.stream = io.StringIO()
        header = {"now": self.now, "freshness": {"orders": self.now}, "warehouse": to_record(WAREHOUSE)}
        self.journal = Journal(self.stream, header)
        self.prepared = {name: Prepared(query) for name, query in WAREHOUSE.queries.items()}
        measuring = QueryMeasurer(WindowRows(lambda table: ()))
        self.queries = LiveQueries(all_of(WAREHOUSE), plan, self.kernel, measuring, history, self.prepared)
        self.told = []
        self.queries.attach(self.told.append)
        self.running = []

    def prepare(self, edited: dict[str, Query]) -> dict[str, Prepared]:
        """As `QuerySide` does: one that is the same is the same object."""
        known = self.queries.running
        return {
            name: known[name] if name in known and known[name].query == query else Prepared(query)
            for name, query in edited.items()
        }

    def pass_time(self, by_us: int) -> None:
        end = self.now + by_us
        while self.kernel.wake_at <= end or self.running or self.told:
            self.now = max(self.now, min(end, self.kernel.wake_at))
            events = [IterationFinished(job) for job in self.running]
            self.queries.look(self.now)
            events += self.told
            self.told.clear()
            instructions = self.kernel.handle(self.now, events)
            self.journal.write(self.now, events, instructions)
            # One that is to be put aside ends instead, as it may.
            ended = {event.job for event in events if isinstance(event, IterationFinished)}
            self.running = [job for job in self.running if job not in ended]
            self.running += [each.job for each in instructions if isinstance(each, Start)]
            validate(self.kernel)
        self.now = end


QUERY = st.builds(
    lambda name, stride, cost, pool, least: replace(
        WAREHOUSE.queries["one"],
        name=name,
        pool=pool,
        stride_us=stride * SECOND,
        deadline_us=stride * SECOND,
        part_us=100_000,
        keep_least=Fraction(least, 10),
        cost=Cost(cost * 10_000, Fraction(cost, 1_000_000)),
    ),
    st.sampled_from(["one", "two", "three", "four", "five"]),
    st.integers(1, 9),
    st.integers(1, 300),
    st.sampled_from(["shedding", "shedding", "plain"]),
    st.integers(0, 10),
)
EDITS = st.lists(
    st.tuples(st.lists(QUERY, max_size=5, unique_by=lambda query: query.name), st.integers(0, 30)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(EDITS)
def test_whatever_is_edited_all_that_run_fit_and_the_journal_replays(tmp_path_factory, edits) -> None:
    folder: Path = tmp_path_factory.mktemp("history")
    with History(folder / "history.sqlite") as history:
        run = Run(history)
        run.pass_time(5 * SECOND)
        for queries, seconds in edits:
            before = set(run.queries.running)
            edited = {query.name: query for query in queries}
            answer = run.queries.decide(run.prepare(edited), run.now)
            refused = [each["name"] for each in answer["refused"]]
            assert sorted([*answer["admitted"], *answer["unchanged"], *refused]) == sorted(edited)
            assert set(run.queries.running) == {*answer["admitted"], *answer["unchanged"]}
            assert before == {*answer["removed"], *answer["unchanged"]}
            assert {each.name for each in run.queries.statuses() if each.state == "REFUSED"} == set(refused)
            run.pass_time(seconds * SECOND)
            for pool in run.kernel.pools:
                loads = [task.load for task in queries_of(run.kernel) if task.pool is pool]
                assert is_schedulable(loads, [load.least_us for load in loads])
        run.pass_time(60 * SECOND)
        assert {task.name for task in queries_of(run.kernel)} == set(run.queries.running)
        assert {each.state for each in run.queries.statuses()} <= {"RUNNING", "REFUSED"}
        header, *calls = [json.loads(line) for line in run.stream.getvalue().splitlines()]
        assert replay(kernel_of(header), calls, header)[1] is None


def test_a_pool_that_held_nothing_and_may_be_for_tables_takes_no_query(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        run = Run(history)
        plain = replace(WAREHOUSE.queries["one"], name="two", pool="plain")
        answer = run.queries.decide(run.prepare({**WAREHOUSE.queries, "two": plain}), run.now)
        assert answer["unchanged"] == ["one"]
        assert [(each["name"], each["period_least"]) for each in answer["refused"]] == [("two", None)]
        assert "restart the run" in answer["refused"][0]["reason"]


def test_what_was_measured_of_a_query_is_not_told_of_another_that_takes_its_name(tmp_path: Path) -> None:
    with History(tmp_path / "history.sqlite") as history:
        run = Run(history)
        run.pass_time(5 * SECOND)
        other = replace(WAREHOUSE.queries["one"], cost=Cost(7_000, Fraction(0)))
        run.pass_time(run.queries._due_at["shedding/1"] - run.now - 1)
        run.queries.decide(run.prepare({"one": other}), run.now)
        run.now += 1  # it is time to measure as well
        run.pass_time(0)
        (task,) = queries_of(run.kernel)
        assert task.load.cost_us == 7_000
