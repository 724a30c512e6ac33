"""`freshline plan`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from freshline.base.errors import DefinitionErrors
from freshline.base.printable import printable
from freshline.cli.printing.grid import note, tell
from freshline.cli.printing.kinds import PRINTED
from freshline.cli.printing.outputs import with_placement
from freshline.cli.printing.pools import pool_record, show_pools
from freshline.cli.printing.sparks import show_sparks, spark_record
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    AllOption,
    JsonOption,
    ProjectOption,
    console,
    load_with_costs,
    print_json,
    project_folder,
    storage_path,
    working,
)
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Warehouse
from freshline.landing.directories import landing_directories, missing_directories
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.sparks import with_sparks
from freshline.planning.plan.whole_tables import with_whole_tables


def plan(
    project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False, all_rows: AllOption = False
) -> None:
    """Prove, before anything runs, how stale each table can become, and which queries are in time.

    Example: freshline plan -p examples/network/freshline.yml
    """
    warehouse, learned = load_with_costs(project)
    landing = landing_directories(warehouse, project_folder(project), storage_path(project, warehouse))
    to_mend = _before_a_run(warehouse, landing)
    with working("planning"):
        verdict = make_plan(warehouse, learned)
    verdict = with_placement(verdict, learned, project)
    with working("counting cores"):
        verdict = with_sparks(verdict)
    with working("measuring tables that are computed whole"):
        verdict = with_whole_tables(verdict)
    if as_json:
        print_json(plan_record(verdict) | ({"before_a_run": to_mend} if to_mend else {}))
    else:
        screen = console()
        show_plan(screen, verdict, all_rows)
        for number, sentence in enumerate(to_mend):
            if not number:
                screen.print("[yellow]Before a run[/] mend this:", highlight=False)
            screen.print(f"  - {printable(sentence)}", highlight=False, markup=False)
    raise typer.Exit(0 if verdict.holds else 1)


def _before_a_run(warehouse: Warehouse, landing: Mapping[str, Path]) -> list[str]:
    """All that `run` would say of the file before it starts Spark; nothing of a file without any `path`."""
    if not landing:
        return []
    found = missing_directories(warehouse, landing)
    try:
        check_runnable(warehouse)
    except DefinitionErrors as errors:
        found = [*map(str, errors.errors), *found]
    return [sentence.removesuffix(".") for sentence in found]


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    tables, *others = (kind.plan_record(plan) for kind in PRINTED)
    record = {"holds": plan.holds, "pools": [pool_record(plan, pool) for pool in plan.pools], **tables}
    record["advice"] = list(plan.advice)
    for of_kind in others:
        record |= of_kind
    if plan.sparks:
        record["sparks"] = [spark_record(each) for each in plan.sparks]
    return record


def show_plan(screen: Console, plan: Plan, all_rows: bool) -> None:
    show_sparks(screen, plan)
    if plan.pools:
        show_pools(screen, plan)
        screen.print()
    for kind in PRINTED:
        kind.show_plan(screen, plan, all_rows)
    _show_verdict(screen, plan)


def _show_verdict(screen: Console, plan: Plan) -> None:
    if plan.holds:
        said, *more = (clause for kind in PRINTED if (clause := kind.held(plan)) is not None)
        word = "Expected" if plan.expected else "Holds"
        screen.print(f"[green]{word}:[/] {', and '.join([said, *reversed(more)])}.", highlight=False)
    else:
        for kind in PRINTED:
            line = kind.failing(plan)
            if line is not None:
                screen.print(line, highlight=False)
    for sentence in plan.advice:
        tell(screen, f"  - {sentence}")
    for kind in PRINTED:
        for sentence in kind.assumed(plan):
            note(screen, sentence)
