"""`freshline results`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.base.names import Names
from freshline.base.printable import printable
from freshline.cli.printing.grid import grid
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    storage_path,
)
from freshline.definitions.sections.queries import QUERIES
from freshline.live.queries.held_back import held_back_line
from freshline.live.queries.result_files import newest
from freshline.storage.control.layout import StorageLayout

_ROWS_MAX = 40


def results(
    query: Annotated[str, typer.Argument(help="The query's name.", metavar="NAME")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Show the newest answer of a continuous query.

    Where it was computed from a part of the window, counts and sums are scaled, and each has an interval that
    holds the true value 95 times in 100.

    Example: freshline results busiest --json
    """
    warehouse = load_project(project)
    controls = StorageLayout(storage_path(project, warehouse)).controls(warehouse.nodes)
    found = newest(controls, query)
    if found is None:
        if query not in warehouse.queries:
            what = f"there is no query {query!r}"
            raise InputError(what, Names(QUERIES.name, warehouse.queries).remedy(query))
        what = f"{query} has not been answered yet"
        remedy = (
            "It is while the warehouse runs (`freshline run`), unless it was refused: see `freshline status`"
        )
        raise InputError(what, remedy)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    screen = console()
    if found["window"][1] <= 0:
        into = found.get("held_back_by") or "its tables"
        screen.print(Text(printable(f"{found['query']}: nothing has been loaded into {into} yet.")))
        return
    start, end, finished = (utc(round(at * SECOND)) for at in (*found["window"], found["finished"]))
    late = "" if found["met"] else ", after its deadline"
    window = f"from {start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
    read = f"from {found['keep']:.0%} of its window ({found['rows_seen']:,} rows)"
    screen.print(Text(f"{found['query']}: {window}, answered at {finished:%H:%M:%S}{late}, {read}."))
    if found.get("held_back_by") is not None:
        behind_us = None if found["behind"] is None else round(found["behind"] * SECOND)
        sentence = held_back_line(found["held_back_by"], behind_us)
        screen.print(Text(printable(f"{sentence}."), "yellow"))
    rows = found["rows"]
    if not rows:
        nothing = (
            "There are no rows." if found["keep"] else "Nothing was read: its budget was too small for that."
        )
        screen.print(nothing)
        return
    intervals = {(each["row"], each["column"]): each for each in found["estimates"]}
    numbers = [name for name, value in rows[0].items() if type(value) in (int, float)]
    table = grid("", *(f">{name}" if name in numbers else name for name in rows[0]))
    for number, row in enumerate(rows[:_ROWS_MAX]):
        table.add_row(*(_cell(value, intervals.get((number, column))) for column, value in row.items()))
    screen.print(table)
    if len(rows) > _ROWS_MAX:
        screen.print(f"... and {len(rows) - _ROWS_MAX:,} more rows; --json has them all.")


def _cell(value: Any, interval: dict[str, Any] | None) -> Text:
    text = "-" if value is None else printable(f"{value:.6g}" if isinstance(value, float) else str(value))
    if interval is not None and interval["low"] is not None and interval["high"] is not None:
        text += f" ({interval['low']:.6g} to {interval['high']:.6g})"
    return Text(text)
