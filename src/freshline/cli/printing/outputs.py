"""Outputs with a deadline and their steps: as JSON, and for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.shared import ROWS_MAX, grid, load_project, show_rest, storage_path, working
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.placement_change import placement_change
from freshline.planning.plan.plan import OutputPlan, Plan
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.steps import OutputResult, StepResult
from freshline.storage.control.layout import StorageLayout


def with_placement(plan: Plan, learned: Mapping[str, int], project: Path) -> Plan:
    """The plan with its steps placed as the next run places them, and the verdicts on its outputs.

    It is unchanged without steps. `learned` is what the plan was made with: a new plan is made when the
    staleness of steps becomes known.
    """
    if not plan.warehouse.steps:
        return plan
    # Loading the solver takes longer than other commands take to run.
    from freshline.live.nodes.node_join import stored_placement
    from freshline.planning.plan.outputs import judge_outputs, plan_outputs, with_outputs

    warehouse = plan.warehouse
    stored = stored_placement(load_project(project), StorageLayout(storage_path(project, warehouse)))
    with working("placing"):
        found = new = plan_outputs(warehouse)
        if stored.in_use is not None:
            found = judge_outputs(warehouse, stored.in_use)
        elif stored.staying:
            kept = plan_outputs(warehouse, kept=stored.staying)
            found = new if kept.placed is None else kept
    if plan.tables and found.staleness_us:
        plan = make_plan(plan.warehouse, learned, found.staleness_us)
    plan = with_outputs(plan, found)
    if not stored.number or found.placed is None or new.placed is None:
        return plan
    change = placement_change(found.placed, _holding(found.outputs), new.placed, _holding(new.outputs))
    return replace(plan, change=change)


def _holding(outputs: Iterable[OutputPlan]) -> set[str]:
    return {output.name for output in outputs if output.holds}


def verdict(plan: Plan) -> typer.Exit:
    """Prints why the steps could not be placed, and returns the exit of the command."""
    for reason in dict.fromkeys(output.reason for output in plan.outputs):
        print(f"The outputs cannot be placed: {reason}.", file=sys.stderr)
    return typer.Exit(1)


def output_record(output: OutputPlan) -> dict[str, Any]:
    """An output's plan as JSON."""
    return {
        "name": output.name,
        "deadline": seconds(output.deadline_us),
        "holds": output.holds,
        "node": output.node,
        "sub_deadlines": [
            {"operator": step, "seconds": seconds(until_us)}
            for step, until_us in output.sub_deadlines_us.items()
        ],
        "slack": seconds(output.slack_us),
        "reason": output.reason,
    }


def show_outputs(screen: Console, plan: Plan, all_rows: bool) -> None:
    """Shows the outputs of a plan, and the node of each of their steps."""
    outputs = grid("Outputs", {"output": False, "deadline": True, "node": False, "slack": True, "": False})
    for output in plan.outputs[: None if all_rows else ROWS_MAX]:
        outputs.add_row(
            output.name,
            format_duration(output.deadline_us),
            output.node or "-",
            format_duration(output.slack_us, down=True),
            "[green]holds[/]" if output.holds else "[red]not proven[/]",
        )
    screen.print(outputs)
    show_rest(screen, len(plan.outputs), all_rows)
    screen.print()
    if plan.placed is not None:
        _show_steps(screen, plan, all_rows)
    for output in plan.outputs:
        if output.reason is not None:
            screen.print(f"{output.name}: {output.reason}.", highlight=False, markup=False)
    if plan.change is not None:
        said = f"The next run keeps steps where the storage has them: {plan.change.sentence}."
        screen.print(said, highlight=False, markup=False)


def _show_steps(screen: Console, plan: Plan, all_rows: bool) -> None:
    placed = plan.placed
    assert placed is not None
    steps = grid("Steps", {"step": False, "node": False, "cost": True, "sub-deadline": True})
    for name in list(placed.nodes)[: None if all_rows else ROWS_MAX]:
        steps.add_row(
            name,
            placed.nodes[name],
            format_duration(placed.costs_us[name], up=True),
            format_duration(placed.sub_deadlines_us[name], down=True),
        )
    screen.print(steps)
    show_rest(screen, len(placed.nodes), all_rows)
    screen.print()


def simulated_records(result: SimulationResult) -> dict[str, Any]:
    """The results of outputs and steps in a simulated run, as JSON; empty if there are none."""
    if not result.steps:
        return {}
    return {
        "outputs": [_output_record(output) for output in result.outputs],
        "steps": [_step_record(step) for step in result.steps],
    }


def _output_record(output: OutputResult) -> dict[str, Any]:
    return {
        "name": output.name,
        "node": output.node,
        "deadline": seconds(output.deadline_us),
        "rows": output.rows,
        "misses": output.misses,
        "latency": {
            "p50": seconds(output.latency_p50_us),
            "p95": seconds(output.latency_p95_us),
            "max": seconds(output.latency_max_us),
        },
    }


def _step_record(step: StepResult) -> dict[str, Any]:
    return {
        "name": step.name,
        "node": step.node,
        "sub_deadline": seconds(step.sub_deadline_us),
        "jobs": step.jobs,
        "misses": step.misses,
        "backlog": step.backlog,
        "failed": step.failed,
    }


def show_simulated_outputs(screen: Console, result: SimulationResult, all_rows: bool) -> None:
    columns = {"output": False, "deadline": True, "rows": True, "misses": True}
    outputs = grid("Outputs", {**columns, "p50": True, "p95": True, "max": True})
    for output in result.outputs[: None if all_rows else ROWS_MAX]:
        outputs.add_row(
            output.name,
            format_duration(output.deadline_us),
            str(output.rows),
            f"[red]{output.misses}[/]" if output.misses else "0",
            format_duration(output.latency_p50_us),
            format_duration(output.latency_p95_us),
            format_duration(output.latency_max_us),
        )
    screen.print(outputs)
    show_rest(screen, len(result.outputs), all_rows)
    columns = {"step": False, "node": False, "sub-deadline": True}
    steps = grid("Steps", {**columns, "jobs": True, "misses": True, "backlog": True})
    for step in result.steps[: None if all_rows else ROWS_MAX]:
        steps.add_row(
            step.name,
            step.node,
            format_duration(step.sub_deadline_us),
            str(step.jobs),
            str(step.misses),
            str(step.backlog),
        )
    screen.print(steps)
    show_rest(screen, len(result.steps), all_rows)
    screen.print()
