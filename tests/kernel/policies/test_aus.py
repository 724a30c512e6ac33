"""AUS: which late tables recover when (paper 001, Rule NR and (6)), and what holds for all meanwhile."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Recovery as RecoveryKind
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.aus import Aus, Capacity
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.terms import LEAVING, NORMAL, RECOVERING, Recovery
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.kernel.tables.task import TableTask
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.simulation.arrivals import FeedArrivals
from freshline.simulation.conditions.outages import InterruptedFeed, checked_outages, downstream
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline.testing.script import FixedCosts, play
from freshline_lab.runs.warehouses import WarehouseShape, random_outages, random_warehouse


def rule_of(task: TableTask) -> AdaptiveRelease:
    assert isinstance(task.rule, AdaptiveRelease)
    return task.rule


def modes(kernel: Kernel) -> dict[str, int]:
    return {task.name: rule_of(task).mode for task in kernel.tasks}


def waiting(kernel: Kernel) -> list[str]:
    order = kernel.pools[0].order
    assert isinstance(order, Aus)
    return [task.name for task in order.waiting(kernel.now)]


def with_all_late(builder: Builder) -> Kernel:
    """At 1000 every table gets ten files at once."""
    kernel = assemble(make_plan(builder.build()))
    files = [DataFile(at * SECOND, at) for at in range(910, 1001, 10)]
    kernel.handle(1000 * SECOND, [FileArrived(task.name, file) for task in kernel.tasks for file in files])
    return kernel


# -- arbitration: which of several late tables ---------------------------------------------------------


def test_the_table_that_asks_for_the_least_extra_share_recovers_first():
    # On two tracks each could have a whole one, 0.9, 0.5 and 0.7 more than it has; 1.1 is spare.
    builder = Builder(tracks=2, policy="aus")
    for name, cost in (("small", 1), ("large", 5), ("middle", 3)):
        builder.files(name, period=10, cost=cost)
    kernel = with_all_late(builder)
    assert modes(kernel) == {"small": NORMAL, "large": RECOVERING, "middle": NORMAL}
    assert waiting(kernel) == ["middle", "small"]


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a")])
def test_of_equal_tables_the_one_that_is_defined_first_recovers_first(names):
    builder = Builder(policy="aus")
    for name in names:
        builder.files(name, period=10, cost=2)
    kernel = with_all_late(builder)
    assert modes(kernel) == {name: RECOVERING if name == names[0] else NORMAL for name in names}
    assert waiting(kernel) == [*names[1:]]


def test_a_heavier_table_recovers_before_those_that_ask_for_less():
    builder = Builder(tracks=2, policy="aus")
    for name, cost, weight in (("small", 1, 2), ("large", 5, 1), ("middle", 3, 1.5)):
        builder.files(name, period=10, cost=cost, weight=weight)
    kernel = with_all_late(builder)
    assert modes(kernel) == {"small": RECOVERING, "large": NORMAL, "middle": NORMAL}
    assert waiting(kernel) == ["middle", "large"]


def test_no_table_overtakes_one_that_waits_ahead_of_it():
    # 0.95 of three tracks is spare. The first takes 0.1; the second wants 0.9, which is more than is left.
    builder = Builder(tracks=3, policy="aus")
    for name, cost, weight in (("third", 9, 1), ("second", 1, 2), ("first", 9, 3), ("well", 1.5, 0)):
        builder.files(name, period=10, cost=cost, weight=weight, late_after=2000 if name == "well" else None)
    kernel = with_all_late(builder)
    assert modes(kernel) == {"third": NORMAL, "second": NORMAL, "first": RECOVERING, "well": NORMAL}
    assert waiting(kernel) == ["second", "third"]


def test_all_recover_at_once_where_recovery_is_together():
    builder = Builder(tracks=2, policy="aus", recovery="together")
    for name, cost in (("small", 1), ("large", 5), ("middle", 3)):
        builder.files(name, period=10, cost=cost)
    kernel = with_all_late(builder)
    assert modes(kernel) == dict.fromkeys(("small", "large", "middle"), RECOVERING)
    assert waiting(kernel) == []


def test_a_table_that_is_behind_by_its_threshold_and_no_more_is_not_late():
    def mode(newest: int) -> int:
        kernel = assemble(
            make_plan(Builder(policy="aus").files("v", period=10, cost=2, late_after=30).build())
        )
        files = [DataFile(SECOND, 1), DataFile(newest, 2)]
        kernel.handle(40 * SECOND, [FileArrived("v", file) for file in files])
        return modes(kernel)["v"]

    assert (mode(30 * SECOND), mode(30 * SECOND + 1)) == (NORMAL, RECOVERING)


# -- capacity ------------------------------------------------------------------------------------------


def test_a_share_that_fills_the_tracks_exactly_is_admitted():
    capacity = Capacity({0: (1, 3), 1: (1, 3)}, 1)
    assert capacity.admits(0, 2, 3)
    assert not capacity.admits(0, 2 * 10**30 + 1, 3 * 10**30)
    capacity.set(0, 2, 3)
    assert not capacity.admits(1, 10**30 + 1, 3 * 10**30)
    assert capacity.admits(1, 1, 3)


shares = st.integers(1, 60).flatmap(lambda period: st.tuples(st.integers(1, period), st.just(period)))


@given(
    st.lists(shares, min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), shares)),
    st.integers(1, 4),
)
def test_a_change_is_admitted_if_the_exact_sum_is_at_most_the_number_of_tracks(initial, changes, tracks):
    capacity = Capacity(dict(enumerate(initial)), tracks)
    taken = dict(enumerate(initial))
    for task, share in changes:
        task %= len(initial)
        total = sum(Fraction(*each) for each in {**taken, task: share}.values())
        assert capacity.admits(task, *share) == (total <= tracks)
        capacity.set(task, *share)
        taken[task] = share


# -- when the share is free ----------------------------------------------------------------------------

# Two equal tables that are late at 10, as in figure 7: (7) gives both 1.5, and only one can have it.
TWO_LATE = [(1, 1), (10, 4), (10, 7), (10, 10)]


def two_late(end: float, last_cost_of_v1: int = 1, v2_file: int | None = None) -> Kernel:
    """Played up to `end`; v2 may get one file more, and nothing else comes."""
    builder = Builder(policy="aus")
    for name in ("v1", "v2"):
        builder.files(name, period=3, phase=1, cost=1, late_after=8)
    kernel = assemble(make_plan(builder.build()))
    files = [(arrival * SECOND, timestamp * SECOND) for arrival, timestamp in TWO_LATE]
    more = [] if v2_file is None else [(v2_file * SECOND, v2_file * SECOND)]
    costs = {"v1": [SECOND, SECOND, SECOND, last_cost_of_v1 * SECOND], "v2": [SECOND]}
    play(kernel, round(end * SECOND), costs, {"v1": files, "v2": [*files, *more]})
    return kernel


def test_a_table_that_is_no_longer_late_does_not_enter_when_the_share_is_free():
    # At 12 v2 has loaded up to 4, and is behind by 6. v1 leaves at 14.5.
    assert [waiting(two_late(end)) for end in (10, 11.9, 12, 14.5)] == [["v2"], ["v2"], [], []]
    assert modes(two_late(14.5)) == {"v1": NORMAL, "v2": NORMAL}
    assert rule_of(two_late(30).tasks[1]).recovery is None


def test_a_table_that_waited_in_vain_can_be_late_again():
    # By 17 v2 has loaded all there was, up to 10.
    recovery = rule_of(two_late(20, v2_file=20).tasks[1]).recovery
    assert recovery is not None
    assert recovery.entered == 20 * SECOND


@pytest.mark.parametrize(
    ("last_cost", "free_at", "mode_before"),
    [(1, 14.5, LEAVING), (3, 16, RECOVERING)],
    ids=["ends before its deadline", "ends after its deadline"],
)
def test_a_share_is_free_when_the_last_job_has_ended_and_not_before_its_deadline(
    last_cost, free_at, mode_before
):
    # v1's last job is due at 14.5. v2 gets a file at 14, and is late when the share is free.
    before = two_late(free_at - 0.1, last_cost, v2_file=14)
    assert (modes(before), waiting(before)) == ({"v1": mode_before, "v2": NORMAL}, ["v2"])
    after = two_late(free_at, last_cost, v2_file=14)
    assert (modes(after), waiting(after)) == ({"v1": NORMAL, "v2": RECOVERING}, [])


# -- what holds for every warehouse --------------------------------------------------------------------


class Watch:
    """Looks at a run with outages, job by job."""

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self.kernel = kernel
        self.plan = plan
        self.recoveries: dict[int, tuple[str, Recovery]] = {}

    def finished(self, now: int, job: Update, freshness: int) -> None:
        response_us = self.plan.tables[job.task.place].response_bound_us
        assert response_us is not None
        assert now - job.release <= response_us, f"{job!r} was not done within its response bound"
        self._note_recoveries()
        for pool in self.plan.pools:
            assert sum(self._share(self.kernel.task(name)) for name in pool.tables) <= pool.tracks

    def ended(self, now: int) -> None:
        self._note_recoveries()
        for table, recovery in self.recoveries.values():
            assert recovery.in_time is not False, f"{table}: {recovery}"
            if recovery.ended is None and recovery.due is not None:
                assert now <= recovery.due, f"{table} is still recovering: {recovery}"

    def _note_recoveries(self) -> None:
        for task in self.kernel.tasks:
            if isinstance(task.rule, AdaptiveRelease) and task.rule.recovery is not None:
                self.recoveries[id(task.rule.recovery)] = (task.name, task.rule.recovery)

    def _share(self, task: TableTask) -> Fraction:
        cost_us, period_us = self.plan.tables[task.place].provisioned_us, task.period_us
        assert cost_us is not None
        if isinstance(task.rule, AdaptiveRelease) and task.rule.mode != NORMAL:
            period_us = task.rule.terms.period_us
        return Fraction(cost_us, period_us)


def run_checked(
    warehouse: Warehouse, seed: int, end: int, at_worst: bool
) -> tuple[Plan, list[int], set[str]]:
    """A run in which `Watch` checks every response, promise and share (6).

    Returns the plan, the largest staleness of each table, and the tables that no outage reaches.
    """
    plan = make_plan(warehouse)
    kernel = assemble(plan)
    outages = checked_outages(warehouse, random_outages(warehouse, seed, end // 3))
    files = {
        name: InterruptedFeed(FeedArrivals(feed, seed), outages.get(name, ()))
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files"
    }
    watch = Watch(kernel, plan)
    costs = {
        name: FixedCosts([planned.cost_us])
        if at_worst or table.cost is None
        else CostDraws(table.cost, seed, name)
        for planned, (name, table) in zip(plan.tables, warehouse.tables.items(), strict=True)
    }
    updates = SimulatedUpdates(costs, watch)
    SimulatedDriver(kernel, {Update: updates}, files).run(end)
    staleness = [updates.observation.tables[name].staleness_max_us for name in warehouse.tables]
    validate(kernel)
    watch.ended(end)
    return plan, staleness, set(warehouse.tables) - downstream(warehouse, outages)


def recovering(warehouse: Warehouse, recovery: RecoveryKind) -> Warehouse:
    pools = {name: replace(pool, recovery=recovery) for name, pool in warehouse.pools.items()}
    return replace(warehouse, pools=pools)


def assert_unaffected_tables_keep_their_bounds(
    warehouse: Warehouse, seed: int, end: int, at_worst: bool
) -> None:
    plan, staleness, unaffected = run_checked(warehouse, seed, end, at_worst)
    for table, stalest_us in zip(plan.tables, staleness, strict=True):
        assert table.staleness_bound_us is not None
        if table.name in unaffected:
            assert stalest_us <= table.staleness_bound_us, table.name


seeds = st.integers(min_value=0, max_value=2**32)
kinds = st.sampled_from(["fastest", "together"])


@sampled(60)
@given(seeds, kinds, st.booleans())
def test_outages_break_no_bound_of_a_table_that_they_do_not_reach_and_no_promise(seed, recovery, at_worst):
    """Theorems 1 to 4: response and staleness bounds, recovery times, and (6) at any time."""
    warehouse = recovering(random_warehouse(seed, WarehouseShape(policies=("aus",))), recovery)
    assert_unaffected_tables_keep_their_bounds(warehouse, seed, 600 * SECOND, at_worst)


@sampled(150)
@given(seeds, kinds, st.booleans())
def test_the_same_for_a_few_tables_and_longer_runs(seed, recovery, at_worst):
    shape = WarehouseShape(tables_max=6, depth_max=3, tracks_max=2, policies=("aus",), pools_max=1)
    warehouse = recovering(random_warehouse(seed, shape), recovery)
    assert_unaffected_tables_keep_their_bounds(warehouse, seed, 1500 * SECOND, at_worst)


@sampled(80)
@given(seeds, kinds, st.booleans())
def test_modes_that_change_all_the_time_break_no_response_bound_and_no_promise(seed, recovery, at_worst):
    """Tables that count as late when they hardly are go in and out of recovery mode (Theorem 1)."""
    shape = WarehouseShape(tables_max=10, depth_max=3, tracks_max=3, policies=("aus",), pools_max=1)
    warehouse = recovering(random_warehouse(seed, shape), recovery)
    rng = random.Random(seed)
    tables = {
        name: replace(table, late_after_us=max(1, table.period_us * rng.randint(1, 30) // 10))
        for name, table in warehouse.tables.items()
    }
    run_checked(replace(warehouse, tables=tables), seed, 400 * SECOND, at_worst)
