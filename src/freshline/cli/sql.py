"""`freshline sql`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    storage_path,
)

_ROWS_MAX = 1_000


def sql(
    query: Annotated[str, typer.Argument(help="A query in Spark SQL over the tables.")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Ask the tables, as they are now, in Spark SQL.

    Example: freshline sql "SELECT src, sum(bytes) FROM packets GROUP BY src"
    """
    from freshline.spark.query import query as ask
    from freshline.spark.session import open_session

    warehouse = load_project(project)
    session = open_session(f"{warehouse.name} sql")
    try:
        answer = ask(session, warehouse, storage_path(project, warehouse), query)
        rows = answer.toLocalIterator()
        if as_json:
            for row in rows:
                print(json.dumps(row.asDict(recursive=True), default=str))
            return
        shown = Table(box=None, header_style="bold")
        for column in answer.columns:
            shown.add_column(Text(column))  # as it is: brackets in names and values are no markup
        for number, row in enumerate(rows):
            if number == _ROWS_MAX:
                shown.caption = f"only the first {_ROWS_MAX:,} rows: --json prints all"
                break
            shown.add_row(*(Text("" if value is None else str(value)) for value in row))
        console().print(shown)
    finally:
        session.stop()
