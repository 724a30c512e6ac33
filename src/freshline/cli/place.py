"""`freshline place`."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from freshline.base.duration import SECOND, format_duration
from freshline.base.errors import InputError
from freshline.cli.printing.grid import ROWS_MAX, grid, listed, tell
from freshline.cli.shared import (
    JsonOption,
    console,
    duration_option,
    load_project,
    load_with_costs,
    print_json,
    read_input,
    say,
    storage_path,
    working,
)
from freshline.planning.placement.placement import Placement, PlacementLayout
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.plan.counted_costs import count_cores
from freshline.planning.plan.placed_steps import PlacedSteps, placement_plan, unknown_costs, why_unknown

if TYPE_CHECKING:
    from freshline.planning.placement.place import Method


class MethodOption(StrEnum):
    deadline = "deadline"
    sqpr = "sqpr"


def place(
    file: Annotated[
        Path | None,
        typer.Argument(help="A JSON file: nodes, sources, operators and outputs.", metavar="[FILE]"),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("-p", "--project", help="Place the steps of this warehouse: its folder or file."),
    ] = None,
    limit: Annotated[str, typer.Option(help="How long the solver may search for the optimum.")] = "60s",
    method: Annotated[
        MethodOption, typer.Option(help="By deadlines, or by traffic and load as SQPR does.")
    ] = MethodOption.deadline,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the nodes with their operators into this PNG.", metavar="FILE")
    ] = None,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="With -p: use this placement from now on (no node may run)."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find a node and a deadline for each operator, so that outputs are in time.

    The file holds {"nodes": [{"name": "edge"}, {"name": "centre", "speed": 2, "blocking": "0.1"}], "links":
    [["edge", "centre"]], "sources": [{"stream": "s", "node": "edge", "rate": 10}], "operators": [{"name":
    "clean", "inputs": ["s"], "cost": "0.5", "nodes": ["edge"]}, {"name": "alert", "inputs": ["clean"],
    "outputs": ["alerts"], "cost": 2, "selectivity": "0.1"}], "outputs": [{"stream": "alerts", "deadline": 10,
    "node": "centre"}]}, times in seconds. Without "links" every node reaches every other, without "nodes" an
    operator may be anywhere, without "outputs" it makes a stream of its own name. Numbers may be written as
    decimal strings.

    Of a warehouse (-p) the operators are the tables of outputs with a `deadline`.

    Exit code 1 where no placement is in time (then it says by which factor deadlines would have to be
    longer), or where none was found within the limit.

    Example: freshline place examples/place/collision.json --json
    """
    limit_us = duration_option(limit, "--limit")
    if (file is None) == (project is None):
        what = "neither a file nor a project is named" if file is None else "a file and a project are named"
        raise InputError(what, "Name a JSON file, or a warehouse with -p")
    if apply and (project is None or method is not MethodOption.deadline):
        raise InputError("--apply is for a warehouse placed by its deadlines", "Name it with -p")
    plan, title = _plan_of(file, project, as_json)
    found = show_placement(plan, method.value, limit_us / SECOND, plot, as_json, title)
    if apply:
        assert project is not None
        _apply(project, found)
    if not found.holds:
        raise typer.Exit(1)


def show_placement(
    plan: PlacementPlan, method: Method, limit_s: float, plot: Path | None, as_json: bool, title: str
) -> Placement:
    """Places a plan, and prints and draws the result."""
    # Loading the solver takes longer than other commands take to run.
    from freshline.planning.placement.place import place as placed

    start = monotonic()
    with working("placing"):
        found = placed(plan, limit_s, method)
    seconds = monotonic() - start
    if plot is not None:
        _draw(plan, found, plot, title)
    if as_json:
        print_json(placement_record(found, seconds))
    else:
        _show(console(), plan, found)
    return found


def _plan_of(file: Path | None, project: Path | None, as_json: bool) -> tuple[PlacementPlan, str]:
    """The plan to place, and its name."""
    if project is None:
        from freshline.planning.placement.plan_file import parse_plan

        assert file is not None
        return read_input(file, parse_plan), file.name
    warehouse, _ = load_with_costs(project)
    if not warehouse.steps:
        raise InputError("there is no output to be placed", "Give a table a `deadline`")
    unknown = unknown_costs(warehouse)
    if unknown:
        if as_json:
            print_json(placement_record(Placement("unknown", None, None, None), 0.0))
        say(why_unknown(warehouse, unknown))
        raise typer.Exit(1)
    return placement_plan(PlacedSteps(count_cores(warehouse))), warehouse.name


def _apply(project: Path, found: Placement) -> None:
    """Stores a placement while no node runs."""
    from freshline.live.nodes.same_definitions import digest_of
    from freshline.live.run.heartbeat import sole_writer
    from freshline.planning.plan.outputs import placed_by
    from freshline.storage.control.layout import StorageLayout as Storage

    warehouse, _ = load_with_costs(project)
    placed = placed_by(count_cores(warehouse), found)
    if placed is None:
        remedy = "Change the definitions: nothing can be placed so"
        if found.status == "unknown":
            remedy = "Give it more time with a longer --limit"
        raise InputError("there is no placement to apply", remedy)
    placed = replace(placed, definitions=digest_of(load_project(project)))
    layout = Storage(storage_path(project, warehouse))
    with sole_writer(layout, warehouse.nodes, "place"):
        number, _ = layout.placements.newest()
        if not layout.placements.add(placed.record(), number):
            raise InputError("another process has just placed the steps", "Run again")
    print("Applied: nodes use it from their next start on.", file=sys.stderr)


def _draw(plan: PlacementPlan, found: Placement, path: Path, title: str) -> None:
    from freshline.pictures.figures import save
    from freshline.pictures.placement import placement_figure

    layout = found.layout
    if layout is None and found.infeasible is not None:
        layout, title = found.infeasible.layout, f"{title}, deadlines stretched"
    if layout is not None:
        save(placement_figure(plan, layout, title), path)


def placement_record(found: Placement, seconds: float) -> dict[str, Any]:
    """A placement as JSON."""
    why = found.infeasible
    return {
        "status": found.status,
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "seconds": seconds,
        **_layout_record(found.layout),
        "tasks": [
            {
                "node": task.node,
                "operators": list(task.operators),
                "cost": task.cost,
                "sub_deadline": task.sub_deadline,
            }
            for task in found.tasks
        ],
        "nodes": [{"name": node.name, "load": node.load, "slack": node.slack} for node in found.nodes],
        "infeasible": None
        if why is None
        else {
            "reason": why.reason,
            "outputs": list(why.outputs),
            "nodes": list(why.nodes),
            "stretch": why.stretch,
            **_layout_record(why.layout),
        },
    }


def _layout_record(layout: PlacementLayout | None) -> dict[str, Any]:
    if layout is None:
        return {"placement": {}, "routes": [], "sub_deadlines": []}
    return {
        "placement": dict(layout.nodes),
        "routes": [
            {"stream": route.stream, "from": route.from_node, "to": route.to_node} for route in layout.routes
        ],
        "sub_deadlines": [each._asdict() for each in layout.sub_deadlines],
    }


def _show(screen: Console, plan: PlacementPlan, found: Placement) -> None:
    why, layout = found.infeasible, found.layout
    if found.holds:
        tell(screen, f"Every output is in time. Objective {found.objective:.6g}, {_certainty(found)}.")
    elif found.status == "infeasible":
        tell(screen, "No placement is in time." if why is None else f"No placement is in time: {why.reason}.")
    else:
        said = "No placement in time was found, nor a proof that there is none: a longer --limit may help."
        tell(screen, said)
    if why is not None and why.stretch is not None:
        tell(screen, f"With deadlines {why.stretch:.6g} times as long the placement below is in time.")
        outputs, nodes = listed(why.outputs, 10), listed(why.nodes, 10)
        tell(screen, f"Outputs that bind: {outputs}. Nodes that bind: {nodes}.")
        layout = why.layout
    if layout is None:
        return
    _show_operators(screen, plan, layout)
    if found.nodes:
        table = grid("Nodes", "node", ">load", ">slack")
        for node in found.nodes[:ROWS_MAX]:
            table.add_row(node.name, _seconds(node.load), "-" if node.slack is None else _seconds(node.slack))
        screen.print(table)


def _show_operators(screen: Console, plan: PlacementPlan, layout: PlacementLayout) -> None:
    table = grid("Operators", "operator", "node", ">cost", ">sub-deadline")
    for operator in plan.operators[:ROWS_MAX]:
        until = layout.sub_deadline.get(operator.name)
        table.add_row(
            operator.name,
            layout.nodes[operator.name],
            _seconds(float(operator.cost)),
            "-" if until is None else _seconds(until),
        )
    screen.print(table)
    if len(plan.operators) > ROWS_MAX:
        screen.print(f"... and {len(plan.operators) - ROWS_MAX} more: --json shows every one.", style="dim")


def _certainty(found: Placement) -> str:
    if found.status == "optimal":
        return "the least there is"
    return f"at most {found.gap:.1%} above the least there is"


def _seconds(value: float) -> str:
    return format_duration(round(value * SECOND)) if value >= 1e-4 else f"{value:.3g}s"
