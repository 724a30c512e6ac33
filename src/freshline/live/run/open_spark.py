"""Opens the Spark of a run: its own, which the run closes, or the caller's."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from freshline.live.run.run_end import RunEnd
from freshline.live.tables.run_context import RunSetup
from freshline.spark.loading.sink import driver_limit
from freshline.spark.session.java import end_java
from freshline.spark.session.session import open_session

# After a signal: Spark's own end may wait for what it is busy with.
_SPARK_MAX_S = 2.0
_AT_ONCE_S = 0.2


def open_spark(site: RunSetup, scratch: Path, stack: ExitStack, ending: RunEnd) -> SparkSession:
    if site.session is not None:
        return site.session
    # Registered first: a signal may come after Spark's start and before `open_session` returns.
    stack.callback(lambda: ending.interrupted and end_java())
    session = open_session(site.warehouse.name, site.master, site.settings, scratch / "spark")
    stack.callback(_stop_spark, session, ending)
    driver_limit(session)  # reports a wrong setting now, not at every update
    return session


def _stop_spark(session: SparkSession, ending: RunEnd) -> None:
    if ending.interrupted and end_java():
        return
    if ending.signals and end_java(_SPARK_MAX_S if ending.signals == 1 else _AT_ONCE_S):
        return
    try:
        session.stop()
    except (Py4JError, OSError):
        if not ending.lost:
            raise
