"""Tracks on a real Spark: each has a pool of its own, and its jobs are counted."""

import pytest

from freshline.spark.session.session import use_track
from freshline.spark.session.task_counts import TaskCounts

pytestmark = pytest.mark.spark


def test_every_track_has_a_pool_of_its_own(spark) -> None:
    pools = []
    for track in range(2):
        use_track(spark, "updates", track)
        pools.append(spark.sparkContext.getLocalProperty("spark.scheduler.pool"))
    assert len(set(pools)) == 2


def test_the_tasks_that_a_job_runs_at_once_are_counted(spark) -> None:
    counts, cores = TaskCounts(), spark.sparkContext.defaultParallelism
    use_track(spark, "updates", 7)
    spark.range(0, 10, 1, 1).collect()
    assert counts.of(spark, "narrow") == 1
    spark.range(0, 10, 1, 64).collect()
    assert counts.of(spark, "wide") == cores
    assert counts.of(spark, "narrow") == 1  # no job has run since


def test_jobs_of_before_a_track_began_are_not_counted(spark) -> None:
    use_track(spark, "updates", 8)
    spark.range(0, 10, 1, 64).collect()
    counts = TaskCounts()
    counts.begin(spark)
    assert counts.of(spark, "table") == 0
    spark.range(0, 10, 1, 1).collect()
    assert counts.of(spark, "table") == 1
