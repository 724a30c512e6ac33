"""Service classes in simulated time: what every policy keeps to, whatever comes."""

import io
import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.language.policies import policies_for
from freshline.definitions.load import loads
from freshline.definitions.sections.classes import PART_MOST_US
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.events import Event
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.requests.events import PartLost
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.requests import ExpectedRequest, SimulatedRequests
from freshline.simulation.simulated_run import files_of, header_of
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.script import FixedCosts, Schedule
from freshline_lab.experiments.classes.service_runs import simulate_classes

MS = SECOND // 1000
POLICIES = policies_for("classes")
PROJECT = """\
name: test
pools: {{main: {{tracks: {tracks}, policy: {policy}}}}}
feeds:
  f: {{path: f, format: json, schema: "ts timestamp", timestamp: ts, period: 2s}}
  g: {{path: g, format: json, schema: "ts timestamp", timestamp: ts, period: 3s}}
tables: {{t: {{feed: f, cost: {{startup: 300ms}}}}, u: {{feed: g, cost: {{startup: 500ms}}}}}}
classes: {{gold: {{error: 0.3}}, iron: {{error: 0.2, data_error_factor: 3}}, lead: {{error: 0.5}}}}
"""


def random_requests(rng: random.Random) -> Iterator[ExpectedRequest]:
    """Too many or few, with deadlines from hopeless to generous, and costs that are not as expected."""
    rate, scale = rng.choice([5, 30, 80]), rng.choice([1, 20])
    at = 0.0
    for number in range(1, 400):
        at += rng.expovariate(rate) * SECOND * scale / 5
        parts = tuple(rng.randint(1, 20 * scale) * MS for _ in range(rng.randint(1, 6)))
        time_us = round(sum(parts) * rng.choice([0.5, 2, 15]))
        name = rng.choice(["gold", "iron", "lead"])
        costs = [max(1, round(part * rng.choice([0.5, 1, 1, 3]))) for part in parts]
        yield ExpectedRequest(Request(number, name, round(at), round(at) + time_us, parts), costs)


class Losing(SimulatedRequests):
    """Some parts fail, of some requests for good."""

    rng = random.Random(0)

    def ended(self, now: int, job: RequestPart) -> Event:
        ended = super().ended(now, job)
        fate = self.rng.random()
        return PartLost(job, hopeless=fate < 0.03) if fate < 0.1 else ended


class Watch:
    """Notes what becomes of each request, and refuses what must not be."""

    def __init__(self) -> None:
        self.asked: dict[int, Request] = {}
        self.said: dict[int, AnswerRequest | RejectRequest] = {}

    def submitted(self, request: Request) -> None:
        self.asked[request.number] = request

    def started(self, now: int, job: RequestPart) -> None:
        assert job.request.number not in self.said
        assert now < job.request.deadline
        assert not any(task.state == 2 for task in job.task.pool.order.ready() if hasattr(task, "intake"))

    def ended(self, now: int, job: RequestPart) -> None:
        assert now <= job.request.deadline

    def answered(self, now: int, answer: AnswerRequest) -> None:
        assert answer.request.number not in self.said
        assert now <= answer.request.deadline
        assert 0 <= answer.parts_done <= len(answer.request.parts_us)
        self.said[answer.request.number] = answer

    def rejected(self, now: int, reject: RejectRequest) -> None:
        assert reject.request.number not in self.said
        assert now == reject.request.submitted
        assert reject.retry_after_us > 0
        self.said[reject.request.number] = reject


@sampled(15)
@given(st.integers(0, 10**6), st.sampled_from(POLICIES), st.integers(1, 3))
def test_each_request_is_rejected_or_answered_once_and_by_its_deadline(
    seed: int, policy: str, tracks: int
) -> None:
    rng = random.Random(seed)
    warehouse = loads(PROJECT.format(policy=policy, tracks=tracks))
    plan = make_plan(warehouse)
    lines, watch = io.StringIO(), Watch()
    kind = Losing(random_requests(rng), watch)
    kind.rng = rng
    updates = SimulatedUpdates({name: FixedCosts([300 * MS, 500 * MS]) for name in warehouse.tables})
    files = {name: files_of(feed, seed, ()) for name, feed in warehouse.feeds.items()}
    journal = Journal(lines, header_of(plan, 0, seed, Conditions()))
    driver = SimulatedDriver(
        assemble(plan), {RequestPart: kind, Update: updates}, files, journal, kind.listeners
    )
    kind.attach(driver)
    end = 12 * SECOND
    while driver.next_at <= end:
        driver.step()
        validate(driver.kernel)
    due = {number for number, request in watch.asked.items() if request.deadline <= end}
    assert due <= watch.said.keys() <= watch.asked.keys()
    records = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert replay(kernel_of(records[0]), records[1:]) == (len(records) - 1, None)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(POLICIES), st.integers(1, 3))
def test_no_update_ends_later_than_is_proven_however_many_ask(seed: int, policy: str, tracks: int) -> None:
    rng = random.Random(seed)
    text = f"name: n\npools: {{main: {{tracks: {tracks}, policy: {policy}}}}}\n"
    text += "classes: {gold: {error: 0.5}}\n"
    periods_s = {f"t{number}": rng.choice([1, 2, 3, 5]) for number in range(rng.randint(1, 2 * tracks + 1))}
    share = rng.uniform(0.3, 1.0) * tracks / len(periods_s)
    costs_ms = {name: max(1, int(1000 * min(1, share) * period_s)) for name, period_s in periods_s.items()}
    text += "feeds:\n" + "".join(f"  {name}: {{period: {period}s}}\n" for name, period in periods_s.items())
    text += "tables:\n" + "".join(
        f"  {name}: {{feed: {name}, cost: {{startup: {cost_ms}ms}}}}\n" for name, cost_ms in costs_ms.items()
    )
    plan = make_plan(loads(text))
    bounds = {table.name: table.response_bound_us for table in plan.tables}
    flood = (
        ExpectedRequest(Request(number, "gold", at, at + 9 * SECOND, (PART_MOST_US,) * 5), [PART_MOST_US] * 5)
        for number, at in enumerate(range(0, 20 * SECOND, 700 * MS // tracks))
    )
    kind, schedule = SimulatedRequests(flood, Watch()), Schedule()
    updates = SimulatedUpdates(
        {name: FixedCosts([cost_ms * MS]) for name, cost_ms in costs_ms.items()}, schedule
    )
    files = {name: files_of(feed, seed, ()) for name, feed in plan.warehouse.feeds.items()}
    driver = SimulatedDriver(
        assemble(plan), {RequestPart: kind, Update: updates}, files, None, kind.listeners
    )
    kind.attach(driver)
    driver.run(20 * SECOND)
    assert schedule.jobs
    for job in schedule.jobs:
        assert job.finish <= job.release + bounds[job.table]


@pytest.mark.parametrize("load", [150, 300])
def test_quotas_reject_the_least_important_and_keep_to_the_errors_declared(load: int) -> None:
    course = simulate_classes("rds-quota", [(0, load)], seed=1, seconds=30)
    total = [sum(count.submitted - count.rejected for count in counts) for counts in course.counts]
    asked = [sum(count.submitted for count in counts) for counts in course.counts]
    shares = [admitted / submitted for admitted, submitted in zip(total, asked, strict=True)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99 > 0.7 > shares[3]
    for counts, reference, share in zip(course.counts, (0.3, 0.2, 0.4, 0.5), shares, strict=True):
        if share > 0.1:
            errors = sum(count.errors for count in counts) / sum(count.ended for count in counts)
            assert errors <= reference
            assert sum(count.unanswered for count in counts) <= 0.01 * sum(count.ended for count in counts)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_the_same_whenever_it_is_run(policy: str) -> None:
    one, other = (simulate_classes(policy, [(0, 200)], seed=3, seconds=10) for _ in range(2))
    assert one == other
    assert one.parts > 2_000
