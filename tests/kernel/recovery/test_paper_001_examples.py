"""Paper 001's worked examples and figures 5 and 7, job by job with the paper's numbers. One unit is a second.

Where the print contradicts itself the reading is the one that its own numbers need: in Example 1 only the
files 2 to 4 arrive at 10, and in Examples 4 to 6 released jobs of T_1 go first.
"""

from itertools import accumulate, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.tables import Table
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.terms import LEAVING, NORMAL, RECOVERING, Recovery
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.intake import FileIntake
from freshline.kernel.tables.task import TableTask
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.simulation.arrivals import FeedArrivals
from freshline.simulation.conditions.outages import InterruptedFeed
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.testing.builder import Builder
from freshline.testing.script import Schedule, play
from freshline_lab.runs.warehouses import WarehouseShape, random_outages, random_warehouse

# A job in seconds: its number, release, deadline, start, finish, and the freshness that it reaches.
Row = tuple[float, ...]

HEALTHY = [(at, at) for at in range(1, 50, 3)]
# The feed is down during [4, 10); what should have come then comes at 10 (figure 2).
BROKEN = [(1, 1), (10, 4), (10, 7), (10, 10), *((at, at) for at in range(13, 50, 3))]


def us(files: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(arrival * SECOND, timestamp * SECOND) for arrival, timestamp in files]


def rows(schedule: Schedule, table: str) -> list[Row]:
    return [(job.number, *(at / SECOND for at in (*job[2:6], job.loaded_to))) for job in schedule.of(table)]


def staleness(schedule: Schedule, table: str, second: float) -> float:
    """By Rule 2 and Definition 5: the time since the freshness that the last job to end by then reached."""
    return second - max((job[5] for job in rows(schedule, table) if job[4] <= second), default=0)


def two_tables(policy: PolicyName, late_after: int | None = None) -> Plan:
    """Two tables of p = 3 and e = 1 on one track, their files from 1 on."""
    builder = Builder(policy=policy)
    for name in ("v1", "v2"):
        builder.files(name, period=3, phase=1, cost=1, late_after=late_after)
    return make_plan(builder.build())


# -- Examples 1 and 2, figures 2 and 3: trailing edge, backlog, consistency -----------------------------


def backlog(task: TableTask) -> list[float]:
    """BL: the timestamps of the files that have arrived and are not loaded, those being loaded included."""
    assert isinstance(task.intake, FileIntake)
    loading = () if task.job is None else task.job.files
    return [file.timestamp / SECOND for file in (*loading, *task.intake.pending)]


def test_example_1_files_that_come_at_once_are_the_backlog_and_move_the_trailing_edge():
    costs = {"v1": [SECOND], "v2": [SECOND]}
    kernel = assemble(two_tables("edf-strict"))
    play(kernel, SECOND, costs, {"v1": us(BROKEN), "v2": us(HEALTHY)})
    assert [task.intake.trailing_edge(SECOND) for task in kernel.tasks] == [SECOND, SECOND]

    kernel = assemble(two_tables("edf-strict"))
    play(kernel, 10 * SECOND, costs, {"v1": us(BROKEN), "v2": us(HEALTHY)})
    assert [backlog(task) for task in kernel.tasks] == [[4, 7, 10], [10]]
    assert kernel.tasks[0].intake.trailing_edge(10 * SECOND) == 10 * SECOND
    assert [task.freshness for task in kernel.tasks] == [SECOND, 7 * SECOND]


def test_example_2_a_derived_table_is_loaded_up_to_the_trailing_edge_of_its_sources():
    warehouse = (
        Builder(tracks=3, policy="edf-strict")
        .files("v2", period=100)
        .files("v3", period=100)
        .derived("v4", ["v2", "v3"], period=20, cost=2)
        .build()
    )
    kernel = assemble(make_plan(warehouse))
    v2, v3, v4 = kernel.tasks
    v2.freshness, v3.freshness, v4.freshness = 8 * SECOND, 9 * SECOND, 5 * SECOND
    for source in (v2, v3):
        assert isinstance(source.intake, FileIntake)
        source.intake.newest = source.freshness
    v4.rule.source_advanced(12 * SECOND)

    (start,) = kernel.handle(12 * SECOND, [])

    assert v4.intake.trailing_edge(12 * SECOND) == 8 * SECOND
    assert (start.job.task, start.job.loaded_from, start.job.loaded_to) == (v4, 5 * SECOND, 8 * SECOND)
    assert kernel.handle(14 * SECOND, [UpdateFinished(start.job, start.job.loaded_to)]) == []
    assert v4.freshness == 8 * SECOND
    validate(kernel)


# -- Examples 4 to 6, figure 5: short periods for the table that is behind ---------------------------------


def figure_5(period_of_t1: float, end: int = 30) -> Schedule:
    """V_1's feed breaks, V_2's does not.

    "Released jobs of T_1 first" is what `rm` does where both have one period: ties go by definition order.
    A table has the period of its feed, 3; the p(T_1, t) that the figure is drawn for is set by hand.
    """
    kernel = assemble(two_tables("rm"))
    kernel.tasks[0].period_now_us = int(period_of_t1 * SECOND)
    return play(kernel, end * SECOND, {"v1": [SECOND], "v2": [SECOND]}, {"v1": us(BROKEN), "v2": us(HEALTHY)})


# Before 10 both schedules are the same but for T_1's deadline.
V2_UP_TO_10 = [(1, 1, 4, 2, 3, 1), (2, 4, 7, 4, 5, 4), (3, 7, 10, 7, 8, 7)]


def test_figure_5_a_with_a_period_of_1_every_pending_file_of_v1_is_loaded_before_v2():
    schedule = figure_5(1)
    assert rows(schedule, "v1")[:7] == [
        (1, 1, 2, 1, 2, 1),
        (2, 10, 11, 10, 11, 4),
        (3, 11, 12, 11, 12, 7),
        (4, 12, 13, 12, 13, 10),
        (5, 13, 14, 13, 14, 13),
        (6, 16, 17, 16, 17, 16),
        (7, 19, 20, 19, 20, 19),
    ]
    assert rows(schedule, "v2")[:7] == [
        *V2_UP_TO_10,
        (4, 10, 13, 14, 15, 10),
        (5, 13, 16, 15, 16, 13),
        (6, 16, 19, 17, 18, 16),
        (7, 19, 22, 20, 21, 19),
    ]


def test_figure_5_b_with_a_period_of_one_and_a_half_both_are_served_in_turn():
    schedule = figure_5(1.5)
    assert rows(schedule, "v1")[:7] == [
        (1, 1, 2.5, 1, 2, 1),
        (2, 10, 11.5, 10, 11, 4),
        (3, 11.5, 13, 12, 13, 7),
        (4, 13, 14.5, 13, 14, 10),
        (5, 14.5, 16, 15, 16, 13),
        (6, 16, 17.5, 16, 17, 16),
        (7, 19, 20.5, 19, 20, 19),
    ]
    assert rows(schedule, "v2")[:7] == [
        *V2_UP_TO_10,
        (4, 10, 13, 11, 12, 10),
        (5, 13, 16, 14, 15, 13),
        (6, 16, 19, 17, 18, 16),
        (7, 19, 22, 20, 21, 19),
    ]


def test_example_5_v1_is_not_fresh_when_the_first_of_its_late_files_is_loaded():
    kernel = assemble(two_tables("rm"))
    kernel.tasks[0].period_now_us = SECOND
    files = {"v1": us(BROKEN), "v2": us(HEALTHY)}
    play(kernel, 11 * SECOND, {"v1": [SECOND], "v2": [SECOND]}, files)
    v1 = kernel.tasks[0]
    assert (v1.freshness, v1.intake.trailing_edge(11 * SECOND)) == (4 * SECOND, 10 * SECOND)
    assert v1.release == 11 * SECOND


def test_example_6_staleness_of_v2_with_both_periods():
    slow, fast = figure_5(1), figure_5(1.5)
    for schedule in (slow, fast):
        # Figure 5(c) up to 10: it grows linearly, and falls when a job ends.
        curve = {0: 0, 2.5: 2.5, 3: 2, 4.5: 3.5, 5: 1, 8: 1, 9.5: 2.5}
        assert {at: staleness(schedule, "v2", at) for at in curve} == curve
    assert [staleness(slow, "v2", at) for at in (10, 12, 14.5, 15)] == [3, 5, 7.5, 5]
    assert [staleness(fast, "v2", at) for at in (10, 11.5, 12, 15)] == [3, 4.5, 2, 2]


# -- Examples 8 to 10, figure 7: two late tables, one after the other in recovery mode -----------------------

FIGURE_7_V1 = [
    (1, 1, 4, 1, 2, 1),
    (2, 10, 11.5, 10, 11, 4),
    (3, 11.5, 13, 12, 13, 7),
    (4, 13, 14.5, 13, 14, 10),
    (5, 14.5, 16, 15, 16, 13),
    (6, 16, 17.5, 16, 17, 16),
    (7, 19, 22, 19.5, 20.5, 19),
    (8, 22, 25, 22.5, 23.5, 22),
    (9, 25, 28, 25, 26, 25),
    (10, 28, 31, 28, 29, 28),
]
FIGURE_7_V2 = [
    (1, 1, 4, 2, 3, 1),
    (2, 10, 13, 11, 12, 4),
    (3, 13, 16, 14, 15, 7),
    (4, 16, 19, 17, 18, 10),
    (5, 18.5, 20, 18.5, 19.5, 13),
    (6, 20, 21.5, 20.5, 21.5, 16),
    (7, 21.5, 23, 21.5, 22.5, 19),
    (8, 23, 24.5, 23.5, 24.5, 22),
    (9, 25, 28, 26, 27, 25),
    (10, 28, 31, 29, 30, 28),
]


def figure_7(end: float) -> tuple[Kernel, Schedule]:
    """Both feeds break, ΔF = 8, and (7) gives p^[r] = 1.5."""
    kernel = assemble(two_tables("aus", late_after=8))
    files = {"v1": us(BROKEN), "v2": us(BROKEN)}
    return kernel, play(kernel, int(end * SECOND), {"v1": [SECOND], "v2": [SECOND]}, files)


def rules(kernel: Kernel) -> list[AdaptiveRelease]:
    return [task.rule for task in kernel.tasks if isinstance(task.rule, AdaptiveRelease)]


def test_example_9_has_the_recovery_periods_of_equation_7():
    assert [rule.terms.period_us / SECOND for rule in rules(assemble(two_tables("aus")))] == [1.5, 1.5]


def test_figure_7_job_by_job():
    _, schedule = figure_7(30)
    assert rows(schedule, "v1") == FIGURE_7_V1
    assert rows(schedule, "v2") == FIGURE_7_V2


def test_figure_7_modes():
    both_normal = [NORMAL, NORMAL]
    at = {
        9: both_normal,
        10: [RECOVERING, NORMAL],  # (6) leaves 1/3, which one of them takes
        16: [RECOVERING, NORMAL],  # D_{1,6} comes as T_{1,5} ends: V_1 is not fresh
        16.9: [RECOVERING, NORMAL],
        17: [LEAVING, NORMAL],  # f_{1,6}: the share is not free before d_{1,6}
        17.4: [LEAVING, NORMAL],
        17.5: [NORMAL, RECOVERING],
        24.4: [NORMAL, RECOVERING],
        24.5: both_normal,  # f_{2,8} = d_{2,8}
        30: both_normal,
    }
    assert {end: [rule.mode for rule in rules(figure_7(end)[0])] for end in at} == at


def test_figure_7_the_tables_that_wait():
    def waiting(end: float) -> list[bool]:
        return [rule.queued for rule in rules(figure_7(end)[0])]

    assert [waiting(end) for end in (9, 10, 17.4, 17.5)] == [
        [False, False],
        [False, True],
        [False, True],
        [False, False],
    ]


def test_example_9_lag_when_the_files_come():
    kernel, _ = figure_7(10)
    assert [task.intake.trailing_edge(10 * SECOND) - task.freshness for task in kernel.tasks] == [
        9 * SECOND,
        9 * SECOND,
    ]


def test_example_9_the_backlog_of_the_table_that_waits_stays_as_it_is():
    # One file every three units comes and one goes, until T_2 enters recovery mode at 17.5.
    lengths = [len(backlog(figure_7(at)[0].tasks[1])) for at in (10, 12, 13, 15, 16, 18)]
    assert lengths == [3, 2, 3, 2, 3, 2]


def test_example_10_tables_are_recovered_within_what_is_promised_of_each():
    # Θ = 3 + 1. Theorem 4 counts from r_{1,2} = 10 with λ = 9: (4·3 + 12·1.5) / 1.5 = 20; and from
    # r_{2,5} = 18.5, half a unit after f_{2,4}: (4·3 + 12.5·1.5) / 1.5 = 20.5.
    kernel, _ = figure_7(30)
    recoveries = [rule.recovery for rule in rules(kernel)]
    assert recoveries == [
        Recovery(entered=10 * SECOND, due=30 * SECOND, ended=17 * SECOND),
        Recovery(entered=17_500_000, due=39 * SECOND, ended=24_500_000),
    ]
    assert [recovery is not None and recovery.in_time for recovery in recoveries] == [True, True]


# -- Examples 3, 7 and 11 for any numbers -------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 25)), min_size=1, max_size=12), st.integers(1, 9)
)
@example([(10, 4), (6, 1)], 1)  # inset (a) of figure 4
@example([(10, 15), (6, 1)], 1)  # inset (b)
@example([(10, 4), (17, 1)], 1)  # inset (c)
@example([(10, 15), (17, 1)], 1)  # inset (d)
def test_example_3_releases_and_deadlines_follow_from_what_arrived_when(gaps_and_costs, cost_of_other):
    """(4) and (3), worked out from the files, the deadlines and the finish times alone.

    Another table on the same track delays the jobs.
    """
    warehouse = Builder(policy="edf-strict").files("v", period=10).continuous("w", period=20).build()
    arrivals = list(accumulate((gap for gap, _ in gaps_and_costs), initial=1))[1:]
    costs = {"v": [cost * SECOND for _, cost in gaps_and_costs], "w": [cost_of_other * SECOND]}
    files = {"v": us([(at, at) for at in arrivals])}
    schedule = play(assemble(make_plan(warehouse)), 2000 * SECOND, costs, files)

    deadline = finish = 0.0
    for arrival, job in zip(arrivals, rows(schedule, "v"), strict=True):
        # Job j loads file j, so V is not fresh at max(d, f) of the job before if that has arrived by then.
        release = deadline if arrival <= max(deadline, finish) else arrival
        assert job[1:3] == (release, release + 10)
        assert job[3] >= max(release, finish)
        deadline, finish = job[2], job[4]


def staleness_of_v2(kernel: Kernel, files: int) -> float:
    """The largest that V_2's staleness becomes when so many files of V_1 come at once, after an outage."""
    back, end = 1 + 3 * files, 100 + 9 * files
    slots = range(1, end, 3)
    schedule = play(
        kernel,
        end * SECOND,
        {"v1": [SECOND], "v2": [SECOND]},
        {
            "v1": us([(1, 1), *((max(at, back), at) for at in slots[1:])]),
            "v2": us([(at, at) for at in slots]),
        },
    )
    assert kernel.tasks[0].freshness >= (end - 9) * SECOND, "V_1 has not recovered"
    return max(job.finish - job.loaded_from for job in schedule.of("v2")) / SECOND


@sampled(40)
@given(st.integers(min_value=2, max_value=400))
def test_example_7_a_fixed_short_period_starves_the_other_table_without_bound_and_aus_does_not(files):
    fixed = assemble(two_tables("rm"))
    fixed.tasks[0].period_now_us = SECOND
    # T_1 keeps the track until it has loaded what was there and what came meanwhile, one and a half units a
    # file. V_2 was loaded up to 3 before, and its next update takes 1.
    busy = next(units for units in range(files, 2 * files) if units == files + units // 3)
    assert staleness_of_v2(fixed, files) == 3 + busy + 1 > 1.4 * files

    plan = two_tables("aus")
    assert plan.tables[1].staleness_bound_us == 10 * SECOND
    assert staleness_of_v2(assemble(plan), files) <= 10


def staleness_once_fresh(result: SimulationResult, table: Table, begin: int, end: int) -> int | None:
    """The largest staleness from the first job on that leaves the table fresh, within [begin, end]."""
    assert result.records is not None
    assert table.feed is not None
    feed = result.plan.warehouse.feeds[table.feed]
    files = InterruptedFeed(FeedArrivals(feed, result.seed), result.outages[table.feed])
    coming, edge, freshness = files.next(), 0, 0
    stalest: int | None = None
    for finish, name, reached in result.records.completions():
        if name != table.name or finish > end:
            continue
        while coming is not None and coming[0] <= finish:
            edge, coming = coming[1].timestamp, files.next()
        if stalest is not None:
            stalest = max(stalest, finish - freshness)
        elif finish >= begin and reached >= edge:
            stalest = 0
        freshness = reached
    return None if stalest is None else max(stalest, end - freshness)


@sampled(80)
@given(st.integers(min_value=0, max_value=2**32))
def test_example_11_once_a_table_is_fresh_after_an_outage_its_bound_holds_again(seed):
    """Theorem 2: staleness stays within A(V) from the first fresh instant on."""
    end = 800 * SECOND
    plan = make_plan(random_warehouse(seed, WarehouseShape(8, 2, 2, policies=("aus",), pools_max=1)))
    outages = random_outages(plan.warehouse, seed, 100 * SECOND)
    result = simulate(plan, end, seed, outages=outages, keep_records=True)
    for index, table in enumerate(plan.warehouse.tables.values()):
        if table.feed not in result.outages:
            continue
        for (_, back), (begins_again, _) in pairwise((*result.outages[table.feed], (end, end))):
            stalest = staleness_once_fresh(result, table, back, begins_again)
            bound_us = plan.tables[index].staleness_bound_us
            assert bound_us is not None
            assert stalest is None or stalest <= bound_us, table.name
