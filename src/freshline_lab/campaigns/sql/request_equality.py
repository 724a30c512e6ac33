"""Compares a request's answer from all slices, in any parts, with Spark's own."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from freshline.spark.answering.request_run import RequestRun
from freshline.sql.request_sql import RequestRefused
from freshline.sql.slices import SLICES
from freshline_lab.campaigns.sql.request_statements import RequestStatement
from freshline_lab.campaigns.sql.sliced_tables import SlicedTables

_PARTS: Final = (1, 100, SLICES)


def difference(
    tables: SlicedTables, session: SparkSession, statement: RequestStatement, rng: random.Random
) -> str | None:
    """How a request's answer differs from the exact one; None: not at all.

    A statement that both Spark and Freshline refuse counts as equal: Spark cannot distinguish two columns
    with the same computation, for instance.
    """
    try:
        asked = tables.asked(statement.sql)
    except RequestRefused as refused:
        return None if _is_refused(tables, statement.sql) else f"{statement.sql}: {refused}"
    run = RequestRun(asked, session, tables.stored, rng)
    while run.slices_left:
        run.read(rng.choice(_PARTS))
    answer = run.answer()
    found = [tuple(map(_plain, row)) for row in answer.rows]
    expected = _rows(tables.exact_sql(statement.sql))
    if Counter(found) != Counter(expected) or (statement.is_ordered and found != expected):
        return f"{statement.sql}: {found} instead of {expected}"
    if not answer.is_complete or answer.notes or any(map(any, answer.few)):
        return f"{statement.sql}: it is complete, and says otherwise"
    if answer.table().num_rows != len(expected):
        return f"{statement.sql}: it has {answer.table().num_rows} rows in Arrow"
    return None


def _is_refused(tables: SlicedTables, sql: str) -> bool:
    """Whether Spark itself refuses the statement."""
    try:
        tables.exact_sql(sql).schema  # noqa: B018  (asked for its effect: the analysis)
    except AnalysisException:
        return True
    return False


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    columns = [[_plain(value) for value in column.to_pylist()] for column in frame.toArrow().columns]
    return list(zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    """The value without the last digits of doubles: variances are summed in another order than Spark's."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
    return f"{value + 0.0:.9g}" if isinstance(value, float) else repr(value)
