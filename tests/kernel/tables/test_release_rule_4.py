"""Paper 001's rule (4) for the next release and (3) for deadlines: Example 3, figure 4, insets (a) to (d).

The table has a period of 10 s; its first file arrives at 10, so its first job has release 10, deadline 20.
"""

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.kernel import Kernel
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from freshline.testing.script import play


def kernel(policy: PolicyName = "edf-strict") -> Kernel:
    return assemble(make_plan(Builder(policy=policy).files("v", period=10, phase=10, cost=1).build()))


def second_job(
    cost_of_first: int, second_arrival: int, policy: PolicyName = "edf-strict"
) -> tuple[int, int, int]:
    """Release, deadline and start, in seconds, of the second job."""
    files = [(10 * SECOND, 10 * SECOND), (second_arrival * SECOND, second_arrival * SECOND)]
    costs = [cost_of_first * SECOND, SECOND]
    job = play(kernel(policy), 100 * SECOND, {"v": costs}, {"v": files}).jobs[1]
    return job.release // SECOND, job.deadline // SECOND, job.start // SECOND


def test_inset_a_a_job_done_in_time_with_the_next_file_there_releases_at_the_deadline():
    assert second_job(cost_of_first=4, second_arrival=16) == (20, 30, 20)


def test_inset_b_a_late_job_with_the_next_file_there_releases_at_its_deadline_in_the_past():
    assert second_job(cost_of_first=15, second_arrival=16) == (20, 30, 25)


def test_inset_b_holds_even_where_the_next_file_came_between_deadline_and_finish():
    assert second_job(cost_of_first=15, second_arrival=23) == (20, 30, 25)


def test_inset_c_a_fresh_table_waits_for_the_next_file():
    assert second_job(cost_of_first=4, second_arrival=27) == (27, 37, 27)


def test_inset_d_a_late_job_of_a_fresh_table_waits_for_the_next_file():
    assert second_job(cost_of_first=15, second_arrival=27) == (27, 37, 27)


@pytest.mark.parametrize(
    ("cost_of_first", "second_arrival", "release"),
    [(10, 20, 20), (4, 20, 20), (15, 25, 20), (10, 21, 21)],
    ids=["all at the deadline", "file at the deadline", "file at the late finish", "file just after"],
)
def test_events_of_one_instant_count_as_being_there_at_that_instant(cost_of_first, second_arrival, release):
    assert second_job(cost_of_first, second_arrival)[0] == release


def test_an_idle_track_starts_a_backlogged_table_before_its_release_but_keeps_the_deadline():
    assert second_job(cost_of_first=4, second_arrival=12, policy="edf") == (20, 30, 14)
    assert second_job(cost_of_first=4, second_arrival=16, policy="edf") == (20, 30, 16)


def test_after_early_starts_the_next_job_counts_from_the_last_of_them():
    # Five files at 50, worked off by 56; without this the file of 61 would be due only at 90.
    files = [(50 * SECOND, at * SECOND) for at in (10, 20, 30, 40, 50)] + [(61 * SECOND, 60 * SECOND)]
    schedule = play(kernel("edf"), 100 * SECOND, {"v": [2 * SECOND]}, {"v": files})
    assert [job.start // SECOND for job in schedule.jobs] == [50, 52, 54, 61]
    assert (schedule.jobs[-1].release // SECOND, schedule.jobs[-1].deadline // SECOND) == (64, 74)


def test_a_file_of_timestamp_zero_is_skipped():
    schedule = play(kernel(), 30 * SECOND, {"v": [SECOND]}, {"v": [(0, 0), (10 * SECOND, 10 * SECOND)]})
    assert [(job.release, job.loaded_to) for job in schedule.jobs] == [(10 * SECOND, 10 * SECOND)]


def test_jobs_load_the_oldest_file_first_one_at_a_time():
    arrivals = [(10 * SECOND, 10 * SECOND), (11 * SECOND, 11 * SECOND), (12 * SECOND, 12 * SECOND)]
    schedule = play(kernel(), 60 * SECOND, {"v": [5 * SECOND]}, {"v": arrivals})
    assert [
        (job.start // SECOND, job.loaded_from // SECOND, job.loaded_to // SECOND) for job in schedule.jobs
    ] == [
        (10, 0, 10),
        (20, 10, 11),
        (30, 11, 12),
    ]


def test_an_older_file_that_comes_late_is_loaded_and_freshness_does_not_go_back():
    arrivals = [(10 * SECOND, 10 * SECOND), (15 * SECOND, 4 * SECOND)]
    schedule = play(kernel(), 60 * SECOND, {"v": [SECOND]}, {"v": arrivals})
    assert [(job.loaded_from, job.loaded_to) for job in schedule.jobs] == [
        (0, 10 * SECOND),
        (10 * SECOND, 10 * SECOND),
    ]


def test_a_derived_table_over_files_is_released_when_its_source_advances():
    warehouse = (
        Builder(tracks=2, policy="edf-strict")
        .files("v", period=10, phase=10, cost=2)
        .derived("w", ["v"], period=30, cost=3)
        .build()
    )
    schedule = play(
        assemble(make_plan(warehouse)),
        60 * SECOND,
        {"v": [2 * SECOND], "w": [3 * SECOND]},
        {"v": [(at * SECOND, at * SECOND) for at in (10, 20, 30, 40, 50)]},
    )
    assert [tuple(value // SECOND for value in job[2:]) for job in schedule.of("w")] == [
        (12, 42, 12, 15, 0, 10),
        (42, 72, 42, 45, 10, 40),
    ]


def test_a_derived_table_a_whole_period_behind_catches_up_on_an_idle_track_under_edf_only():
    def finishes(policy: PolicyName) -> list[int]:
        warehouse = (
            Builder(tracks=2, policy=policy)
            .files("v", period=10, cost=1)
            .derived("w", ["v"], period=10)
            .build()
        )
        schedule = play(
            assemble(make_plan(warehouse)),
            70 * SECOND,
            {"v": [SECOND], "w": [SECOND]},
            # The feed is silent from 10 to 40 and then delivers a long file.
            {"v": [(10 * SECOND, 10 * SECOND), (40 * SECOND, 40 * SECOND)]},
        )
        return [job.finish // SECOND for job in schedule.of("w")]

    assert finishes("edf") == [12, 42, 43, 44]
    assert finishes("edf-strict") == [12, 42, 52, 62]
