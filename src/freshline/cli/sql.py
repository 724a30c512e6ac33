"""`freshline sql`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from freshline.base.errors import InputError
from freshline.base.printable import printable
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    spark_for,
    storage_path,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_MAX = 1_000


def sql(
    query: Annotated[
        str, typer.Argument(help="A query in Spark SQL over the tables, which begins with SELECT or WITH.")
    ],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Query the tables in their current state with Spark SQL. Timestamps are shown in UTC.

    Example: freshline sql "SELECT src, sum(bytes) FROM packets GROUP BY src"
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from freshline.spark.answering.query import check_query
    from freshline.spark.answering.query import query as ask

    warehouse = load_project(project)
    storage = storage_path(project, warehouse)
    check_query(warehouse, storage, query)
    with spark_for(f"{warehouse.name} sql", storage) as session:
        try:
            answer = ask(session, warehouse, storage, query)
            with _in_utc():
                if as_json:
                    for row in answer.toLocalIterator():
                        print(json.dumps(row.asDict(recursive=True), default=str))
                else:
                    console().print(_shown(answer))
        except (PySparkException, Py4JJavaError) as error:
            raise _unanswered(error) from error


@contextmanager
def _in_utc() -> Iterator[None]:
    """Sets the local time zone to UTC, because Spark converts timestamps, also nested ones, to local time."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        del os.environ["TZ"]
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def _shown(answer: DataFrame) -> Table:
    shown = Table(box=None, header_style="bold")
    for column in answer.columns:
        shown.add_column(Text(column))  # unchanged: brackets in names and values are not markup
    for number, row in enumerate(answer.toLocalIterator()):
        if number == _ROWS_MAX:
            shown.caption = f"only the first {_ROWS_MAX:,} rows: --json prints all"
            break
        shown.add_row(*(Text("" if value is None else printable(str(value), but="\n")) for value in row))
    return shown


def _unanswered(error: Exception) -> Exception:
    """The error for the user: a row without a result, or a machine that failed."""
    from pyspark.errors import PySparkException

    from freshline.spark.answering.query import is_too_deep
    from freshline.spark.errors import is_of_a_row, sentence

    if is_too_deep(error):
        return InputError("the SQL is nested too deeply for Spark", "Simplify the query")
    what = f"Spark cannot answer the query: {sentence(error).rstrip('.')}"
    if isinstance(error, PySparkException) or is_of_a_row(error):
        return InputError(what, "Correct the query")
    return OSError(what)
