"""Keeps a Spark busy as other tracks would, to measure what jobs cost beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from freshline.spark.session.session import track_pool, use_pool

# A job of this many numbers takes about as long as a small update.
_NUMBERS = 20_000_000


@contextmanager
def busy_tracks(session: SparkSession, count: int) -> Iterator[None]:
    """Within this context so many threads run jobs on all cores, each in a pool of Spark of its own."""
    over = threading.Event()
    threads = [
        threading.Thread(target=_keep_busy, args=(session, number, over), name=f"busy-{number}", daemon=True)
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _keep_busy(session: SparkSession, number: int, over: threading.Event) -> None:
    use_pool(session, track_pool("busy", number))
    cores = session.sparkContext.defaultParallelism
    while not over.is_set():
        try:
            session.range(0, _NUMBERS, 1, cores).selectExpr("sum(id * 3 % 7)").collect()
        except (PySparkException, Py4JError, OSError):
            return  # Spark has ended
