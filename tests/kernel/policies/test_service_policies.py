"""The rules of the policies that serve classes, one by one."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.sections.classes import ServiceClass
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.timers import Timers
from freshline.kernel.policies.admit_all import AdmitAll
from freshline.kernel.policies.quality_of_data import QualityOfData
from freshline.kernel.policies.rates import Flow, Rates
from freshline.kernel.policies.rds import RdsEdf, RdsHef
from freshline.kernel.policies.rds_quota import RdsQuota
from freshline.kernel.policies.request_order import PERIOD_US, RequestOrder
from freshline.kernel.requests.pending_request import PendingRequest
from freshline.kernel.requests.request import Request
from freshline.kernel.requests.task import ClassTask

MS = SECOND // 1000
CLASSES = [ServiceClass(name, "p", Fraction(error)) for name, error in (("gold", "0.3"), ("lead", "0.5"))]


class World:
    """A policy, its pool and its classes, without a kernel around them."""

    def __init__(self, kind: type[RequestOrder], **options: object) -> None:
        timers = Timers()
        self.policy = kind(CLASSES, timers, **options)
        self.pool = TrackPool("p", 1, 0, self.policy, [])
        self.tasks = {
            each.name: ClassTask(place, each.name, timers, []) for place, each in enumerate(CLASSES)
        }
        for task in self.tasks.values():
            self.pool.join(task)
        self.policy.begin(0)
        self._number = 0

    def ask(self, name: str, at_ms: int, deadline_ms: int, *parts_ms: int) -> PendingRequest | None:
        """The request, if it is admitted."""
        self._number += 1
        parts = tuple(part * MS for part in parts_ms)
        pending = PendingRequest(
            self.tasks[name], Request(self._number, name, at_ms * MS, deadline_ms * MS, parts)
        )
        return pending if self.policy.admit(pending, at_ms * MS) is None else None

    def end(self, pending: PendingRequest) -> None:
        pending.over = True
        self.policy.answered(pending, pending.deadline)


def test_changes_of_one_period_build_upon_each_other() -> None:
    # READINGS' example: μ = 0.01, updates take 50 of 100, requests ask for 60 and then for 20 more.
    quality = QualityOfData(100)
    quality.measured(0)
    assert quality.change(-10) == pytest.approx(-10)
    assert quality.change(-20) == pytest.approx(-20)
    assert quality.mwde == pytest.approx(0.3)
    quality.measured(60)  # it gained more than was thought: a smaller error is enough for as much
    assert quality.change(-60) == pytest.approx(-60)
    assert quality.mwde == pytest.approx(0.6)
    assert quality.change(-1000) == pytest.approx(-80)
    assert quality.mwde == 1
    assert quality.change(1000) == pytest.approx(200)
    assert quality.mwde == 0


def test_a_rate_is_right_from_the_first_instant_on_and_follows_a_surge() -> None:
    flow, updates = Flow(), Flow()
    rates = Rates([flow], updates)
    rates.begin(0)
    for at in range(10, 2_001, 10):
        rates.pass_to(at * MS)
        flow.add(2 * MS)
        rates.heard(300 * MS)
        if at >= 100:
            assert rates.of(flow) == pytest.approx(0.2, rel=0.15)
    assert not rates.surge
    for at in range(2_002, 2_400, 2):
        rates.pass_to(at * MS)
        flow.add(2 * MS)
        rates.heard(300 * MS)
    assert rates.surge
    assert rates.of(flow) > 0.6
    assert rates.memory_us == 8 * 300 * MS


def test_a_server_runs_while_it_has_capacity_and_not_beyond() -> None:
    world = World(RdsEdf)
    one, other = world.ask("gold", 0, 900, 10, 10), world.ask("lead", 0, 800, 10)
    assert world.policy.servers[0].capacity == PERIOD_US / 2
    world.policy.servers[0].left = 0
    assert world.policy.next_part(0) is other
    assert world.policy.next_part(0) is None
    world.policy.servers[0].left = 1
    assert world.policy.next_part(0) is one


@pytest.mark.parametrize(("kind", "first"), [(RdsEdf, 1), (RdsHef, 2)])
def test_of_a_class_the_earliest_deadline_or_the_highest_error_goes_first_and_mandatory_parts_before(
    kind: type[RequestOrder], first: int
) -> None:
    world = World(kind)
    early, late = world.ask("gold", 0, 500, 1, 1, 1), world.ask("gold", 0, 900, 1, 1, 1)
    assert [world.policy.next_part(0), world.policy.next_part(0)] == [early, late]
    early.done, late.done = 2, 1
    for pending in (early, late):
        world.policy.wait(pending, 0)
    assert world.policy.next_part(0).request.number == first
    fresh = world.ask("gold", 0, 990, 1)
    assert world.policy.next_part(0) is fresh


@pytest.mark.parametrize("kind", [AdmitAll, RdsEdf, RdsHef, RdsQuota])
def test_requests_that_are_over_are_kept_no_longer_than_a_period(kind: type[RequestOrder]) -> None:
    world = World(kind)
    asked = [world.ask("lead", at, 4_000, 1, *[1] * (1 + at % 5)) for at in range(0, 60, 3)]
    begun = [world.policy.next_part(60 * MS) for _ in asked]
    for pending in begun:
        pending.done = pending.required  # what is left of it is behind what will come
        world.policy.wait(pending, 60 * MS)
    for pending in begun[:-1]:
        world.end(pending)
    assert world.policy.ready() == begun[-1:]
    world.policy.due(PERIOD_US)
    assert sum(map(len, world.policy.queues())) == 1
    assert world.policy.next_part(PERIOD_US) is begun[-1]


def test_more_than_last_and_than_the_capacity_is_taken_from_lesser_classes_or_rejected() -> None:
    world = World(RdsEdf)
    servers = world.policy.servers
    servers[0].capacity = servers[0].left = 100 * MS
    servers[1].left = 150 * MS
    assert world.ask("gold", 0, 900, 100) is not None
    assert world.ask("gold", 0, 900, 100) is not None
    assert (servers[0].left, servers[1].left) == (200 * MS, 50 * MS)
    assert world.ask("gold", 0, 900, 100) is None
    assert world.ask("lead", 0, 900, 100) is not None


def test_rejections_are_spread_over_the_period() -> None:
    world = World(RdsEdf)
    server = world.policy.servers[1]
    server.submitted_last, server.rejects = 4_000 * MS, 1_000.0 * MS  # a quarter
    admitted = [world.ask("lead", at, 9000, 10) is not None for at in range(12)]
    assert admitted == [True, False, True, True] * 3


def test_who_is_above_the_error_gets_capacity_from_who_is_below() -> None:
    world = World(RdsEdf, update_load=0.2)
    policy = world.policy
    before = [server.capacity for server in policy.servers]
    policy.updates_us = PERIOD_US // 5
    policy.standings[0].ended, policy.standings[0].errors = 10, 8.0  # 0.8 where 0.3 is declared
    policy.standings[1].ended, policy.standings[1].errors = 10, 0.0
    policy.due(PERIOD_US)
    gold, lead = (server.capacity - was for server, was in zip(policy.servers, before, strict=True))
    assert gold > 0 > lead
    assert sum(server.capacity for server in policy.servers) == pytest.approx(0.8 * PERIOD_US)


def test_quotas_give_on_average_the_error_that_is_declared() -> None:
    world = World(RdsQuota)
    errors = []
    for number in range(300):
        pending = world.ask("gold", 1_000 * number, 1_000 * number + 900, *[1] * (2 + number % 9))
        errors.append(pending.request.error(pending.required))
        world.end(pending)
    assert sum(errors) / len(errors) == pytest.approx(0.3, abs=0.01)


def test_the_first_requests_are_admitted_however_large_if_they_can_be_done() -> None:
    world = World(RdsQuota)
    assert world.ask("lead", 10_000, 60_000, *[500] * 60) is not None
    assert world.ask("gold", 10_001, 20_000, *[500] * 30) is None  # it cannot
    assert world.ask("gold", 10_002, 60_000, *[500] * 60) is not None


def test_a_class_closes_where_more_important_ones_leave_it_too_little() -> None:
    world = World(RdsQuota)
    for at in range(0, 3_000, 10):
        for name in ("gold", "lead"):
            pending = world.ask(name, at, at + 500, 9)
            assert name == "lead" or pending is not None
            if pending is not None:
                world.end(pending)
    assert world.policy.quotas[1].closed
    assert not world.policy.quotas[0].closed


@pytest.mark.parametrize("is_admitted", [False, True])
def test_nobody_is_admitted_just_after_somebody_more_important_was_refused(is_admitted: bool) -> None:
    world = World(RdsQuota)
    assert world.ask("gold", 10_000, 10_030, 20) is not None
    assert world.ask("gold", 10_000, 10_030, 20) is None  # it may be asked again after 10 ms
    assert world.ask("lead", 10_001, 12_000, 1) is None
    if is_admitted:
        assert world.ask("gold", 10_002, 12_000, 1) is not None
    assert (world.ask("lead", 10_003, 12_000, 1) is not None) == is_admitted
    assert world.ask("lead", 10_110, 12_000, 1) is not None


def test_nobody_waits_for_what_can_never_be_done_in_time() -> None:
    world = World(RdsQuota)
    assert world.ask("gold", 10_000, 10_100, 200) is None
    assert world.ask("lead", 10_001, 12_000, 1) is not None


def test_the_earliest_deadline_goes_first_if_the_more_important_can_wait() -> None:
    world = World(RdsQuota)
    gold = world.ask("gold", 5_000, 6_000, 10)
    lead = world.ask("lead", 5_000, 5_100, 10)
    assert world.policy.next_part(5_000 * MS) is lead
    world.policy.wait(lead, 5_000 * MS)
    assert world.policy.next_part(5_980 * MS) is gold


def test_one_slow_part_does_not_have_all_requests_refused_for_ever() -> None:
    world = World(RdsQuota)
    slow = world.ask("gold", 0, 5_000, 600)
    assert slow is not None
    assert world.policy.next_part(0) is slow
    slow.done = 1
    part = SimpleNamespace(estimate_us=600 * MS, pending=slow, part=0)
    world.policy.spent(world.policy.by_name["gold"], part, 2_400 * MS, done=True)
    world.end(slow)
    admitted = []
    for period in range(6):
        at_ms = 5_000 * period + 3_000
        found = world.ask("gold", at_ms, at_ms + 5_000, 2_100)
        admitted.append(found is not None)
        if found is not None:
            break
        world.policy.due((period + 1) * PERIOD_US)
    # The first period had an admission. Then 4 times and 2.5 times the estimate do not fit, 1.75 times does.
    assert admitted == [False, False, False, True]
