"""`freshline apply`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from freshline.base.duration import SECOND, format_duration
from freshline.base.printable import printable
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    load_project,
    print_json,
    storage_path,
)
from freshline.service.client import NoAnswer, ask
from freshline.storage.control.layout import StorageLayout


def apply(project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False) -> None:
    """Apply the queries of the edited file to the running warehouse.

    New queries are admitted or refused, and removed ones end after their iteration. An edited query is
    removed and added. The rest of the file must be the same as in the run.

    Exit code 1: some query is refused.

    Example: freshline apply -p my/project
    """
    warehouse = load_project(project)  # reports errors of the file with their lines
    file = project / DEFAULT_PROJECT if project.is_dir() else project
    control = StorageLayout(storage_path(project, warehouse)).first_control(warehouse.nodes)
    try:
        answer = ask(control.service, "POST", "/v1/apply", Path(file).read_bytes())
    except NoAnswer as error:
        print(f"The result is unknown: {printable(error.message)}. See `freshline status`.", file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print_json(answer)
    else:
        for sentence in sentences(answer):
            print(printable(sentence))
    raise typer.Exit(1 if answer["refused"] else 0)


def sentences(answer: dict[str, Any]) -> list[str]:
    """What became of each query."""
    said = [f"{name} is admitted." for name in answer["admitted"]]
    for refused in answer["refused"]:
        least = refused["period_least"]
        remedy = "No stride of up to 1 hour would do"
        if least is not None:
            stride = format_duration(round(least * SECOND), up=True)
            remedy = f"A stride of {stride}, with a deadline as long, would do"
        said.append(f"{refused['name']} is refused: {refused['reason']}. {remedy}.")
    said += [f"{name} ends after its iteration." for name in answer["removed"]]
    return said or ["No query has changed."]
