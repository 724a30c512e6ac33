"""Which ready job goes first, policy by policy, on one track unless said otherwise."""

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.policies.edf import Edf
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from freshline.testing.script import play


def order_of(policy: PolicyName) -> list[str]:
    """The order in which four jobs run that wait while a fifth has the only track until 10."""
    warehouse = (
        Builder(policy=policy)
        .continuous("blocker", period=1000, cost=10)
        .continuous("long", period=300, phase=1)
        .continuous("deadline", period=90, phase=5)
        .continuous("short", period=80, phase=9)
        .continuous("tie", period=90, phase=5)
        .build()
    )
    costs = {"blocker": [10 * SECOND], **{name: [SECOND] for name in ("long", "deadline", "short", "tie")}}
    schedule = play(assemble(make_plan(warehouse)), 20 * SECOND, costs, {})
    return [job.table for job in schedule.jobs[1:]]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo", ["long", "deadline", "tie", "short"]),
        ("rm", ["short", "deadline", "tie", "long"]),
        ("edf", ["short", "deadline", "tie", "long"]),
        ("edf-strict", ["short", "deadline", "tie", "long"]),
        ("prp", ["short", "deadline", "tie", "long"]),
    ],
)
def test_the_order_of_waiting_jobs(policy, order):
    assert order_of(policy) == order


def test_edf_goes_by_deadline_where_rm_goes_by_period():
    def first(policy: PolicyName) -> str:
        warehouse = (
            Builder(policy=policy)
            .continuous("blocker", period=1000, cost=60)
            .continuous("early", period=100, phase=1)
            .continuous("frequent", period=60, phase=50)
            .build()
        )
        costs = {"blocker": [60 * SECOND], "early": [SECOND], "frequent": [SECOND]}
        return play(assemble(make_plan(warehouse)), 62 * SECOND, costs, {}).jobs[1].table

    assert first("edf") == "early"  # 101 before 110
    assert first("rm") == "frequent"  # 60 before 100


def test_prp_loads_everything_in_one_job_for_all_pending_releases():
    warehouse = Builder(policy="prp").continuous("a", period=10).continuous("b", period=1000, cost=35).build()
    schedule = play(assemble(make_plan(warehouse)), 60 * SECOND, {"a": [SECOND], "b": [35 * SECOND]}, {})
    assert [
        (job.release // SECOND, job.start // SECOND, job.loaded_to // SECOND) for job in schedule.of("a")
    ] == [
        (0, 0, 0),
        (10, 36, 36),
        (40, 40, 40),
        (50, 50, 50),
    ]


def test_prp_loads_a_whole_backlog_of_files_in_one_job():
    warehouse = Builder(policy="prp").files("a", period=10, phase=10).build()
    files = [(10 * SECOND, 10 * SECOND), *((50 * SECOND, at * SECOND) for at in (20, 30, 40, 50))]
    schedule = play(assemble(make_plan(warehouse)), 100 * SECOND, {"a": [SECOND]}, {"a": files})
    assert [
        (job.start // SECOND, job.loaded_from // SECOND, job.loaded_to // SECOND) for job in schedule.jobs
    ] == [
        (10, 0, 10),
        (50, 10, 50),
    ]


def test_prp_prefers_more_freshness_for_its_cost_among_equal_periods():
    warehouse = (
        Builder(policy="prp")
        .continuous("blocker", period=5, cost=4)
        .continuous("dear", period=100, phase=1, cost=20)
        .continuous("cheap", period=100, phase=2, cost=10)
        .build()
    )
    costs = {"blocker": [4 * SECOND, SECOND], "dear": [SECOND], "cheap": [SECOND]}
    schedule = play(assemble(make_plan(warehouse)), 9 * SECOND, costs, {})
    assert [job.table for job in schedule.jobs] == ["blocker", "cheap", "blocker", "dear"]


def test_prp_serves_its_own_cluster_first_and_promotes_on_an_idle_track():
    warehouse = (
        Builder(tracks=2, policy="prp", cluster_factor=1)
        .continuous("s1", period=10, cost=1)
        .continuous("s2", period=10, cost=1)
        .continuous("l1", period=1000, cost=100)
        .continuous("l2", period=1000, cost=100)
        .build()
    )
    plan = make_plan(warehouse)
    assert plan.pools[0].clusters is not None
    assert [(cluster.tables, cluster.tracks) for cluster in plan.pools[0].clusters] == [
        (("s1", "s2"), 1),
        (("l1", "l2"), 1),
    ]
    costs = {"s1": [SECOND], "s2": [SECOND], "l1": [100 * SECOND], "l2": [100 * SECOND]}
    kernel = assemble(plan)
    # Track 0 is the short cluster's: s1 there; track 1 belongs to the long ones.
    starts = [(start.job.task.name, start.job.track) for start in kernel.handle(0, [])]
    assert starts == [("s1", 0), ("l1", 1)]
    # Once both short ones are done, a long one is promoted to the idle track.
    schedule = play(assemble(plan), 110 * SECOND, costs, {})
    assert [(job.table, job.start // SECOND) for job in schedule.of("l2")] == [("l2", 2)]


def test_clusters_of_clustered_edf_are_isolated_from_each_other():
    builder = Builder(tracks=2, policy="clustered-edf")
    for number in range(3):
        builder.continuous(f"short{number}", period=10, cost=2)
    for number in range(3):
        builder.continuous(f"long{number}", period=1000, cost=200)
    plan = make_plan(builder.build())
    assert plan.pools[0].clusters is not None
    assert [(cluster.tables, cluster.tracks) for cluster in plan.pools[0].clusters] == [
        (("short0", "short1", "short2"), 1),
        (("long0", "long1", "long2"), 1),
    ]
    kernel = assemble(plan)
    assert [pool.name for pool in kernel.pools] == ["updates/1", "updates/2"]
    starts = [(start.job.task.name, start.job.track) for start in kernel.handle(0, [])]
    assert starts == [("short0", 0), ("long0", 1)]


def test_what_edf_may_start_early_does_not_pile_up_where_tracks_are_never_idle():
    warehouse = Builder().files("f", period=10, jitter=10, cost=2).continuous("c", period=40, cost=32).build()
    kernel = assemble(make_plan(warehouse))
    arrivals = [(at * SECOND, at * SECOND) for at in range(5, 20_000, 4)]
    play(kernel, 20_000 * SECOND, {"f": [2 * SECOND], "c": [32 * SECOND]}, {"f": arrivals})
    order = kernel.pools[0].order
    assert isinstance(order, Edf)
    assert len(order._early) < 40
