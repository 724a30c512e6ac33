"""In which pool, and as which group, the Spark jobs of a thread run."""

from __future__ import annotations

from pyspark.sql import SparkSession


def use_pool(session: SparkSession, pool: str) -> None:
    """This thread's jobs run in that pool."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def use_track(session: SparkSession, pool: str, track: int) -> None:
    """This thread is that track: its jobs run in the pool, and are cancelled together."""
    use_group(session, pool, f"track-{track}", f"track {track}")


def use_group(session: SparkSession, pool: str, group: str, description: str) -> None:
    """This thread's jobs run in that pool, as a group that is cancelled together."""
    use_pool(session, pool)
    session.sparkContext.setJobGroup(group, f"Freshline, {description}", interruptOnCancel=True)
