"""Paper 004's worked examples of freshness, with the paper's numbers. One unit is a second."""

from freshline.base.duration import SECOND
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.task import RUNNING
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline.testing.script import FinishedJob, FixedCosts, play


def test_example_1_a_derived_table_is_loaded_up_to_the_trailing_edge_of_its_sources():
    warehouse = (
        Builder(tracks=3)
        .continuous("v2", period=100, phase=100)
        .continuous("v3", period=100, phase=100)
        .derived("v4", ["v2", "v3"], period=20, phase=12, cost=2)
        .build()
    )
    kernel = assemble(make_plan(warehouse))
    v2, v3, v4 = kernel.tasks
    v2.freshness, v3.freshness, v4.freshness = 8 * SECOND, 9 * SECOND, 5 * SECOND

    (start,) = kernel.handle(12 * SECOND, [])

    assert v4.intake.trailing_edge(12 * SECOND) == 8 * SECOND
    assert start.job.task is v4
    assert (start.job.loaded_from, start.job.loaded_to) == (5 * SECOND, 8 * SECOND)
    assert v4.state == RUNNING
    validate(kernel)

    assert kernel.handle(14 * SECOND, [UpdateFinished(start.job, start.job.loaded_to)]) == []
    assert v4.freshness == 8 * SECOND
    validate(kernel)


def test_example_2_staleness_of_a_base_table_grows_until_a_job_completes():
    kernel = assemble(make_plan(Builder().continuous("v1", period=5, phase=3, cost=2).build()))

    schedule = play(kernel, 12 * SECOND, {"v1": [2 * SECOND]}, {})

    assert schedule.jobs == [
        FinishedJob("v1", 1, 3 * SECOND, 8 * SECOND, 3 * SECOND, 5 * SECOND, 0, 3 * SECOND),
        FinishedJob("v1", 2, 8 * SECOND, 13 * SECOND, 8 * SECOND, 10 * SECOND, 3 * SECOND, 8 * SECOND),
    ]


def test_example_2_the_supremum_of_staleness_is_taken_just_before_a_completion_and_at_the_end():
    plan = make_plan(Builder().continuous("v1", period=5, phase=3, cost=2).build())

    # Just before 5 the table is 5 s stale, just before 10 it is 10 − 3 = 7 s.
    for end, staleness_max in ((4, 4), (5, 5), (9, 6), (10, 7), (12, 7)):
        updates = SimulatedUpdates({"v1": FixedCosts([2 * SECOND])})
        SimulatedDriver(assemble(plan), {Update: updates}, {}).run(end * SECOND)
        assert updates.observation.tables["v1"].staleness_max_us == staleness_max * SECOND
