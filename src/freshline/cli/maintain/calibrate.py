"""`freshline calibrate`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from freshline.cli.run import ConfOption, MasterOption, spark_settings
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    project_folder,
    storage_path,
)
from freshline.planning.costs.fit import RUNS_LEAST


def calibrate(
    project: ProjectOption = DEFAULT_PROJECT,
    files: Annotated[int, typer.Option(min=3, help="How many files of each feed to load.")] = 12,
    loaded: Annotated[
        bool, typer.Option("--loaded", help="Measure while all other tracks are busy.")
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure what updates cost, on the files at hand, without touching the tables.

    Example: freshline calibrate --files 20 && freshline plan

    Where `cores` are declared: freshline calibrate --loaded, so that costs count as they are
    """
    from freshline.live.maintain.calibrate import calibrate as measure

    warehouse = load_project(project)
    measured = measure(
        warehouse,
        project_folder(project),
        storage_path(project, warehouse),
        files_max=files,
        loaded=loaded,
        master=master,
        settings=spark_settings(conf),
    )
    idle = [table for table, count in measured.jobs.items() if count < RUNS_LEAST]
    if measured.lost_because:
        print(f"Stopped: {measured.lost_because}.", file=sys.stderr)
        raise typer.Exit(1)
    if as_json:
        tables = [{"name": table, "updates": count} for table, count in measured.jobs.items()]
        left = [{"feed": entry.feed, "name": entry.name, "reason": entry.reason} for entry in measured.left]
        print_json({"tables": tables, "too_few": idle, "not_loaded": left})
        return
    screen = console()
    for table, count in measured.jobs.items():
        screen.print(f"{table}: {count} updates measured", highlight=False, markup=False)
    for entry in measured.left:
        screen.print(
            f"{entry.stored} could not be loaded and was left where it is: {entry.reason}",
            highlight=False,
            markup=False,
        )
    if idle:
        screen.print(
            f"Too few to learn from: {', '.join(idle)}. Put more files into their feeds.", highlight=False
        )
    screen.print("`freshline plan` uses them if no cost is declared.", highlight=False)
