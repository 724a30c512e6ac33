"""`freshline query`."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from freshline.base.printable import printable
from freshline.cli.printing.grid import grid
from freshline.cli.shared import DEFAULT_PROJECT, JsonOption, ProjectOption, console, print_json
from freshline.service.client import NoAnswer
from freshline.service.query import query as ask

_ROWS_MAX = 40


def query(
    sql: Annotated[str, typer.Argument(help="One SELECT over the tables.")],
    class_name: Annotated[str, typer.Option("--class", help="The service class that asks.", metavar="NAME")],
    deadline: Annotated[str, typer.Option(help="When the answer must be there.", metavar="DURATION")],
    share: Annotated[
        float | None, typer.Option(help="Read at most this share of the rows.", metavar="SHARE")
    ] = None,
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Query the running warehouse, and get the best answer that is possible by the deadline.

    Where it was computed from a part of the rows, counts, sums and means are estimates, and each has an
    interval that holds the true value 95 times in 100; `?` marks those of fewer than 30 rows.

    Exit code 1: it was not admitted, or nothing was there by the deadline.

    Example: freshline query "SELECT sum(bytes) AS b FROM packets" --class analysts --deadline 2s
    """
    try:
        answer = ask(sql, class_name=class_name, deadline=deadline, share=share, project=project)
    except NoAnswer as error:
        if as_json:
            print_json(error.record())
        else:
            print(printable(str(error)), file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print_json(answer)
    else:
        show(answer)


def show(answer: dict[str, Any]) -> None:
    """Shows an answer to people."""
    screen = console()
    parts, rows = answer["parts"], answer["rows"]
    read = "all rows" if answer["complete"] else f"{answer['share']:.1%} of the rows"
    screen.print(Text(f"From {read} ({parts['done']} of {parts['of']} parts), in {answer['seconds']:.2f} s."))
    fresh = [f"{table} up to {at or 'nothing yet'}" for table, at in answer["freshness"].items()]
    screen.print(Text(printable(f"Loaded: {', '.join(fresh)}.")))
    for note in answer.get("notes", ()):
        screen.print(Text(printable(note)))
    if not rows:
        screen.print("There are no rows.")
        return
    table = grid("")
    for name, value in zip(answer["columns"], rows[0], strict=True):  # two columns may have the same name
        table.add_column(Text(printable(name)), justify="right" if _is_number(value) else "left")
    for row in list(zip(rows, answer["intervals"], answer["few"], strict=True))[:_ROWS_MAX]:
        table.add_row(*(_cell(*cell) for cell in zip(*row, strict=True)))
    screen.print(table)
    if len(rows) > _ROWS_MAX:
        screen.print(f"... and {len(rows) - _ROWS_MAX:,} more rows; --json has them all.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any, interval: list[float | None] | None, few: bool) -> Text:
    text = "-" if value is None else f"{value:.6g}" if isinstance(value, float) else _plain(value)
    low, high = interval or (None, None)
    if low is not None and high is not None:
        text += f" ({low:.6g} to {high:.6g})"
    return Text(f"{text} ?" if few else text)


def _plain(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value))
