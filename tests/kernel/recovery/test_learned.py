"""Costs that become known while a kernel runs: it goes on with them, and with the bounds that they give."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import BACKED_OFF, IDLE, WAITING, Task
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.aus_slack import AusSlack
from freshline.kernel.recovery.events import CostsLearned, LearnedCost
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.terms import NORMAL, RECOVERING, Recovery
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if, without_bounds
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.outages import Outages, checked_outages
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import crowded_warehouse, random_outages, random_warehouse

policies: st.SearchStrategy[PolicyName] = st.sampled_from(["aus", "aus-slack"])
seeds = st.integers(0, 10**6)
GUESSED = Cost(SECOND, Fraction(1, 10))


def guessed(warehouse: Warehouse, unknown: frozenset[str]) -> Warehouse:
    """The same with made-up costs where they are not known."""
    tables = {
        name: replace(table, cost=GUESSED) if name in unknown else table
        for name, table in warehouse.tables.items()
    }
    return replace(warehouse, tables=tables)


def header_of(warehouse: Warehouse, unknown: frozenset[str]) -> dict:
    header = {"now": 0, "freshness": None, "unknown": sorted(unknown)}
    return {**header, "warehouse": to_record(guessed(warehouse, unknown))}


def planned(warehouse: Warehouse, unknown: frozenset[str]) -> Plan:
    return without_bounds(make_plan(guessed(warehouse, unknown)), unknown)


class Wakes:
    """Has the kernel called at an instant."""

    def due(self, at: int) -> None:
        return None


class Learning(SimulatedDriver):
    """A simulated run in which costs become known at an instant."""

    def learn(self, at: int, event: Callable[[], Event], look: Callable[[int, Update], None]) -> None:
        """`look` sees every job that ends, just before the kernel hears of it."""
        self._learning = (at, event)
        self._look = look
        self.kernel.timers.set(at, Wakes())

    def _events(self, now: int) -> list[Event]:
        events = super()._events(now)
        for each in events:
            if isinstance(each, UpdateFinished):
                self._look(now, each.job)
        at, event = self._learning
        return [event(), *events] if now == at else events  # the kernel puts them in order


class Witness:
    """Compares with the bounds, once they are known, and notes recoveries."""

    def __init__(self, plan: Plan, learned_at: int) -> None:
        self._plan = plan
        self._learned_at = learned_at
        self.exceeded: list[str] = []
        self.asserted = 0
        self.recoveries: dict[tuple[str, int], Recovery] = {}

    def finished(self, now: int, job: Update) -> None:
        task, rule = job.task, job.task.rule
        self.note(task)
        bound_us = self._plan.tables[task.place].staleness_bound_us
        if now <= self._learned_at or bound_us is None:
            return
        if isinstance(rule, AdaptiveRelease) and rule.excused:
            return
        self.asserted += 1
        if now - job.loaded_from > bound_us:
            self.exceeded.append(f"{task.name} at {now}: {now - job.loaded_from} > {bound_us}")

    def note(self, task: Task) -> None:
        if isinstance(task.rule, AdaptiveRelease) and task.rule.recovery is not None:
            self.recoveries[task.name, task.rule.recovery.entered] = task.rule.recovery


class Run:
    """A run that learns, with all that is to be seen of it."""

    def __init__(
        self, warehouse: Warehouse, unknown: frozenset[str], learned_at: int, outages: Outages, seed: int
    ) -> None:
        self.warehouse, self.unknown, self.seed = warehouse, unknown, seed
        self.plan = make_plan(warehouse)
        self.header = header_of(warehouse, unknown)
        self.kernel = kernel_of(self.header)
        self.witness = Witness(self.plan, learned_at)
        self._stream = io.StringIO()
        costs = {
            name: CostDraws(table.cost, seed, name) for name, table in warehouse.tables.items() if table.cost
        }
        files = {
            name: files_of(feed, seed, outages.get(name, ()))
            for name, feed in warehouse.feeds.items()
            if feed.arrival == "files"
        }
        journal = Journal(self._stream, self.header)
        self.driver = Learning(self.kernel, {Update: SimulatedUpdates(costs)}, files, journal)
        self.driver.learn(
            learned_at, lambda: learned(self.kernel, self.plan, live=False), self.witness.finished
        )

    def to(self, end: int) -> None:
        self.driver.run(end)
        validate(self.kernel)

    @property
    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()][1:]

    def outlasted(self, end: int) -> list[str]:
        for task in self.kernel.tasks:
            self.witness.note(task)
        return [
            f"{name} of {recovery.entered}: due {recovery.due}"
            for (name, _), recovery in self.witness.recoveries.items()
            if recovery.due is not None
            and recovery.due > recovery.entered
            and (end if recovery.ended is None else recovery.ended) > recovery.due
        ]


def random_run(seed: int, policy: PolicyName, crowded: bool, length_s: int) -> tuple[Run, int]:
    """A random warehouse, outages, tables whose costs are not known, and when these become known."""
    rng = Random(f"learned:{seed}")
    warehouse = what_if(crowded_warehouse(seed) if crowded else random_warehouse(seed), policy, {})
    outages = checked_outages(warehouse, random_outages(warehouse, seed, length_s * SECOND // 2))
    names = list(warehouse.tables)
    unknown = frozenset(rng.sample(names, rng.randint(1, len(names))))
    learned_at = rng.randrange(length_s * SECOND * 3 // 4)
    return Run(warehouse, unknown, learned_at, outages, seed), learned_at


# -- what holds for every warehouse ----------------------------------------------------------------------


@sampled(100)
@given(seeds, policies, st.booleans())
def test_costs_learned_in_a_run_leave_it_sound_and_its_journal_replays(seed, policy, crowded):
    run, learned_at = random_run(seed, policy, crowded, 400)
    for instant in (learned_at - 1, learned_at, learned_at + SECOND, 400 * SECOND):
        run.to(instant)
    lines = run.lines
    assert replay(kernel_of(run.header), lines) == (len(lines), None)
    told = [event["learned"] for line in lines for event in line.get("events", ()) if "learned" in event]
    assert len(told) == 1
    assert changed(run) <= told[0].keys()
    bounded = {table.name for table in run.plan.tables if table.staleness_bound_us is not None}
    for task in run.kernel.tasks:
        if task.name in run.warehouse.released_by_files:
            assert isinstance(task.rule, AdaptiveRelease) == (task.name in bounded)


@sampled(100)
@given(seeds, policies, st.booleans())
def test_from_the_first_fresh_instant_on_bounds_hold_and_recoveries_end_as_promised(seed, policy, crowded):
    run, _ = random_run(seed, policy, crowded, 600)
    run.to(600 * SECOND)
    assert run.witness.exceeded == []
    assert run.outlasted(600 * SECOND) == []


@sampled(60)
@given(seeds, policies)
def test_a_kernel_that_learns_before_anything_happens_does_as_one_that_always_knew(seed, policy):
    run, _ = random_run(seed, policy, crowded=False, length_s=200)
    outages = checked_outages(run.warehouse, random_outages(run.warehouse, seed, 100 * SECOND))
    early = Run(run.warehouse, run.unknown, 0, outages, seed)
    early.to(200 * SECOND)
    knew = Run(run.warehouse, frozenset(), 0, outages, seed)
    knew.to(200 * SECOND)
    assert starts(early.lines) == starts(knew.lines)


def changed(run: Run) -> set[str]:
    """The tables whose costs were guessed wrong."""
    before = planned(run.warehouse, run.unknown).tables
    return {
        table.name
        for table, then in zip(run.plan.tables, before, strict=True)
        if table.cost_us != then.cost_us
    }


def starts(lines: Sequence[dict]) -> list[tuple[int, dict]]:
    return [(line["now"], start) for line in lines for start in line.get("instructions", ())]


@sampled(60)
@given(seeds, policies)
def test_what_is_learned_in_two_steps_is_the_same_as_learned_at_once(seed, policy):
    """A pool gets its bounds with the last cost; what was told before does not count twice."""
    warehouse = what_if(random_warehouse(seed), policy, {})
    names = sorted(warehouse.tables)
    at_first, unknown = frozenset(names), frozenset(Random(seed).sample(names, len(names) // 2))
    plan = make_plan(warehouse)
    stepwise = assemble(planned(warehouse, at_first), 0, None)
    stepwise.handle(0, [learned(stepwise, planned(warehouse, unknown), live=False)])
    for task in stepwise.tasks:
        if isinstance(task.rule, AdaptiveRelease):
            assert not unknown & pool_mates(warehouse, task.name)
    stepwise.handle(0, [learned(stepwise, plan, live=False)])
    at_once = assemble(planned(warehouse, at_first), 0, None)
    at_once.handle(0, [learned(at_once, plan, live=False)])
    for one, other in zip(stepwise.tasks, at_once.tasks, strict=True):
        assert (one.worst_case_us, one.startup_us) == (other.worst_case_us, other.startup_us)
        assert terms_of(one) == terms_of(other)
    assert learned(at_once, plan, live=False).tables == {}


def pool_mates(warehouse: Warehouse, name: str) -> set[str]:
    pool = warehouse.tables[name].pool
    return {table.name for table in warehouse.tables.values() if table.pool == pool}


def terms_of(task: Task) -> object:
    return task.rule.terms if isinstance(task.rule, AdaptiveRelease) else None


# -- what a kernel carries over --------------------------------------------------------------------------


def kernel_without_bounds(policy: PolicyName, *tables: str) -> tuple[Kernel, Plan]:
    """Tables that take 1 s every 10 s, on one track, of unknown cost."""
    builder = Builder(policy=policy)
    for table in tables:
        builder.files(table, period=10, phase=10, cost=1)
    warehouse = builder.build()
    return assemble(planned(warehouse, frozenset(tables))), make_plan(warehouse)


def rule_of(task: Task) -> AdaptiveRelease:
    assert isinstance(task.rule, AdaptiveRelease)
    return task.rule


def arrived(table: str, *timestamps_s: int) -> list[Event]:
    return [FileArrived(table, DataFile(at * SECOND, at)) for at in timestamps_s]


def ends(kernel: Kernel) -> list[Event]:
    return [UpdateFinished(task.job, task.job.loaded_to) for task in kernel.tasks if task.job]


@pytest.mark.parametrize("policy", ["aus", "aus-slack"])
def test_a_table_that_is_late_when_costs_become_known_recovers_from_then_on(policy):
    kernel, plan = kernel_without_bounds(policy, "late")
    kernel.handle(200 * SECOND, arrived("late", *range(10, 201, 10)))
    kernel.handle(201 * SECOND, ends(kernel))
    told = learned(kernel, plan)
    kernel.handle(202 * SECOND, [told, *ends(kernel)])
    rule = rule_of(kernel.tasks[0])
    assert (rule.mode, rule.excused) == (RECOVERING, True)
    assert rule.recovery is not None
    for at_s in range(203, 300):  # an update takes a second
        kernel.handle(at_s * SECOND, ends(kernel))
        validate(kernel)
    assert rule.recovery.in_time
    assert not rule.excused


@pytest.mark.parametrize("policy", ["aus", "aus-slack"])
def test_a_job_that_could_have_started_early_waits_for_its_release_once_its_table_has_a_bound(policy):
    kernel, plan = kernel_without_bounds(policy, "a", "b")
    kernel.handle(10 * SECOND, arrived("a", 10))
    # While a's job runs and ends, files come of which the second could start early.
    kernel.handle(11 * SECOND, [*ends(kernel), *arrived("a", 11, 12), *arrived("b", 11)])
    assert kernel.tasks[1].job is not None
    assert kernel.tasks[0].state == WAITING
    told = learned(kernel, plan)
    assert kernel.handle(12 * SECOND, [*ends(kernel), told]) == []
    assert kernel.handle(13 * SECOND, arrived("a", 13)) == []
    validate(kernel)
    assert kernel.wake_at == 20 * SECOND
    (start,) = kernel.handle(20 * SECOND, [])
    assert (start.job.task.name, start.job.release) == ("a", 20 * SECOND)
    validate(kernel)


def test_the_next_job_keeps_its_distance_from_one_that_ended_before():
    kernel, plan = kernel_without_bounds("aus", "a")
    kernel.handle(10 * SECOND, arrived("a", 10))
    kernel.handle(11 * SECOND, ends(kernel))
    kernel.handle(12 * SECOND, [learned(kernel, plan)])
    assert kernel.handle(13 * SECOND, arrived("a", 13)) == []
    assert kernel.wake_at == 20 * SECOND


def test_a_table_is_excused_until_it_is_fresh_and_a_fresh_one_is_not():
    kernel, plan = kernel_without_bounds("aus", "fresh", "ready", "running", "failed")
    kernel.handle(10 * SECOND, arrived("failed", 10))
    job = kernel.tasks[3].job
    assert job is not None
    kernel.handle(11 * SECOND, [JobFailed(job, 50 * SECOND), *arrived("running", 11), *arrived("ready", 11)])
    kernel.handle(12 * SECOND, [learned(kernel, plan)])
    states = {task.name: (task.state, rule_of(task).excused) for task in kernel.tasks}
    assert states["fresh"] == (IDLE, False)
    assert states["failed"] == (BACKED_OFF, True)
    assert states["ready"][1]
    assert states["running"][1]
    assert all(rule_of(task).mode == NORMAL for task in kernel.tasks)
    for at_s in range(13, 60):
        kernel.handle(at_s * SECOND, ends(kernel))
        validate(kernel)
    assert not any(rule_of(task).excused for task in kernel.tasks)


def test_what_reads_a_table_that_is_not_fresh_is_excused_with_it():
    warehouse = (
        Builder(tracks=2, policy="aus")
        .files("raw", period=10, phase=10, cost=1)
        .derived("sums", ["raw"], period=10, cost=1)
        .build()
    )
    kernel = assemble(planned(warehouse, frozenset({"raw"})))
    kernel.handle(10 * SECOND, arrived("raw", 10))
    kernel.handle(11 * SECOND, [learned(kernel, make_plan(warehouse))])
    assert [rule_of(task).excused for task in kernel.tasks] == [True, True]
    assert kernel.tasks[1].state == IDLE


@pytest.mark.parametrize(("came_s", "excused"), [(20, False), (31, True)])
def test_an_outage_is_noticed_that_began_before_the_bounds_were_known(came_s, excused):
    kernel, plan = kernel_without_bounds("aus", "a")
    kernel.handle(10 * SECOND, arrived("a", 10))
    kernel.handle(11 * SECOND, ends(kernel))
    kernel.handle(19 * SECOND, [learned(kernel, plan, live=False)])
    assert not rule_of(kernel.tasks[0]).excused
    kernel.handle(came_s * SECOND, arrived("a", came_s))
    assert rule_of(kernel.tasks[0]).excused is excused


def test_certificates_are_made_once_all_tables_of_a_pool_have_bounds():
    warehouse = (
        Builder(policy="aus-slack")
        .files("late", period=10, phase=10, cost=0.5, rate=Fraction(1, 5))
        .files("healthy", period=20, phase=20, cost=6)
        .build()
    )
    outages = checked_outages(warehouse, {"late": [(30 * SECOND, 100 * SECOND)]})
    certificates = []
    for learned_at in (99 * SECOND, 399 * SECOND):
        run = Run(warehouse, frozenset({"healthy"}), learned_at, outages, 0)
        run.to(398 * SECOND)
        order = run.kernel.pools[0].order
        assert isinstance(order, AusSlack)
        certificates.append(order.certificates)
    assert certificates[0] > 0
    assert certificates[1] == 0


def test_a_pool_one_of_whose_costs_stays_unknown_has_no_bounds_and_others_do():
    warehouse = (
        Builder(policy="aus")
        .pool("reports", policy="aus-slack")
        .files("a", period=10, phase=10, cost=1)
        .files("b", period=10, phase=10, cost=1)
        .files("c", period=10, phase=10, cost=1, pool="reports")
        .derived("over_a", ["a"], period=10, cost=1, pool="reports")
        .build()
    )
    kernel = assemble(planned(warehouse, frozenset({"a", "b", "c"})))
    kernel.handle(SECOND, [learned(kernel, planned(warehouse, frozenset({"b"})))])
    assert [terms_of(task) is not None for task in kernel.tasks] == [False, False, True, False]
    assert kernel.tasks[0].worst_case_us == SECOND
    kernel.handle(2 * SECOND, [learned(kernel, make_plan(warehouse))])
    assert all(terms_of(task) is not None for task in kernel.tasks)


def test_what_was_learned_is_in_the_journal_as_it_was():
    warehouse = (
        Builder(policy="aus-slack")
        .files("a", period=10, phase=3, jitter=2, cost=1, weight=Fraction(1, 3))
        .derived("b", ["a"], period=20, cost=Fraction(1, 4))
        .build()
    )
    kernel = assemble(planned(warehouse, frozenset({"a"})))
    told = learned(kernel, make_plan(warehouse))
    stream = io.StringIO()
    journal = Journal(stream, header_of(warehouse, frozenset({"a"})))
    journal.write(0, [told], kernel.handle(0, [told]))
    header, *lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    again = kernel_of(header)
    assert replay(again, lines) == (1, None)
    assert [terms_of(task) for task in again.tasks] == [terms_of(task) for task in kernel.tasks]
    assert all(terms_of(task) is not None for task in again.tasks)
    assert [task.worst_case_us for task in again.tasks] == [task.worst_case_us for task in kernel.tasks]
    assert repr(told) == "Learned(a, b)"


def test_costs_alone_change_nothing_but_costs():
    kernel, _ = kernel_without_bounds("aus", "a")
    rule = kernel.tasks[0].rule
    kernel.handle(SECOND, [CostsLearned({"a": LearnedCost(3 * SECOND, SECOND, 3 * SECOND, None)})])
    assert kernel.tasks[0].rule is rule
    assert kernel.tasks[0].worst_case_of(2) == 5 * SECOND
