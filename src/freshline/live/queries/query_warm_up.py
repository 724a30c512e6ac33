"""Answers queries a few times before a run begins, to learn their costs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from freshline.base import signals
from freshline.base.clock import clock
from freshline.live.queries.running_query import RunningQuery
from freshline.planning.costs.iterations import PastPart
from freshline.spark.answering.window_reading import PreparedQuery
from freshline.spark.errors import sentence

_logger = logging.getLogger(__name__)
# Parts of different sizes, in enough answers to separate a part's cost from a row's.
_PARTS: Final = (16, 48, 192)
_ANSWERS: Final = 7


def warm_up(session: SparkSession, queries: Sequence[RunningQuery]) -> None:
    """Answers queries over the present data: once if the cost is known, never without data.

    The first answers do not count: Spark compiles for them. The queries take turns, so that the answers that
    count come from a warm Spark. A query that fails here reports its error when it runs.
    """
    known = {query.name for query in queries if query.costs.fitted is not None}
    left = list(queries)
    for number in range(_ANSWERS):
        left = [query for query in left if number == 0 or query.costs.fitted is None]
        left = [query for query in left if _is_answered(session, query, number > 0 or query.name in known)]


def _is_answered(session: SparkSession, query: RunningQuery, counts: bool) -> bool:
    signals.check()
    prepared = query.prepared
    edges = [table.freshness for table in prepared.tables]
    if None in edges:
        return False
    to_us = min(edge for edge in edges if edge is not None)
    try:
        parts = _answer(session, prepared, to_us)
    except Exception as error:  # a query can make Spark raise any error
        _logger.info("%s cannot be warmed up: %s", query.name, sentence(error))
        return False
    if counts:
        query.costs.enter(parts)
    return True


def _answer(session: SparkSession, prepared: PreparedQuery, to_us: int) -> list[PastPart]:
    began, at = clock(), time.perf_counter_ns()
    reading = prepared.begin(session, to_us)
    reading.rows_in_slices()
    parts, rest_us = [], _us_since(at)
    for slices in _PARTS:
        at = time.perf_counter_ns()
        reading.read(slices)
        parts.append(PastPart(began, _us_since(at), slices, reading.rows_of_part(slices)))
    at = time.perf_counter_ns()
    rows = len(reading.outcome().answer.rows)
    return [*parts, PastPart(began, rest_us + _us_since(at), 0, rows)]


def _us_since(at_ns: int) -> int:
    return (time.perf_counter_ns() - at_ns) // 1_000
