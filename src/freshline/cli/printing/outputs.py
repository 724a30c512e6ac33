"""Outputs with a deadline and their steps: plan and simulated results, as JSON and for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.grid import note, show_rows, tell
from freshline.cli.printing.kind import PrintedKind
from freshline.cli.printing.tables import recovery_record
from freshline.cli.shared import load_project, storage_path, working
from freshline.live.status.screen_table import Columns
from freshline.planning.plan.advice import counted
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.placement_change import placement_change
from freshline.planning.plan.plan import OutputPlan, Plan
from freshline.planning.plan.step_placement import StepPlacement
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.steps import OutputResult, StepResult
from freshline.storage.control.layout import StorageLayout


def with_placement(plan: Plan, learned: Mapping[str, int], project: Path | None = None) -> Plan:
    """The plan with its steps placed as the next run places them, and the verdicts on its outputs.

    It is unchanged without steps. Without a project steps are placed anew. `learned` is what the plan was
    made with: a new plan is made when the staleness of steps becomes known.
    """
    if not plan.warehouse.steps:
        return plan
    # Loading the solver takes longer than other commands take to run.
    from freshline.live.nodes.node_join import PlacementInStorage, stored_placement
    from freshline.planning.plan.outputs import judge_outputs, plan_outputs, with_outputs

    warehouse = plan.warehouse
    stored = PlacementInStorage()
    if project is not None:
        stored = stored_placement(load_project(project), StorageLayout(storage_path(project, warehouse)))
    with working("placing"):
        found = new = plan_outputs(warehouse)
        if stored.in_use is not None:
            found = judge_outputs(warehouse, stored.in_use)
        elif stored.staying:
            kept = plan_outputs(warehouse, kept=stored.staying)
            found = new if kept.placed is None else kept
    if plan.tables and found.placed is not None:
        plan = make_plan(plan.declared or warehouse, learned, found.placed)
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


class PrintedOutputs(PrintedKind):
    """The outputs with a deadline, and the steps that they are computed by."""

    def plan_record(self, plan: Plan) -> dict[str, Any]:
        if not plan.outputs:
            return {}
        change = None if plan.change is None else plan.change.record()
        return {"outputs": [_record(output) for output in plan.outputs], "apply": change}

    def show_plan(self, screen: Console, plan: Plan, all_rows: bool) -> None:
        """Shows the outputs of a plan, and the node of each of their steps."""
        if not plan.outputs:
            return
        columns: Columns[OutputPlan] = {
            "output": lambda output: output.name,
            ">deadline": lambda output: format_duration(output.deadline_us),
            "node": lambda output: output.node or "-",
            ">slack": lambda output: format_duration(output.slack_us, down=True),
            "": lambda output: "[green]holds[/]" if output.holds else "[red]not proven[/]",
        }
        show_rows(screen, "Outputs", plan.outputs, all_rows, columns)
        screen.print()
        if plan.placed is not None:
            _show_steps(screen, plan.placed, all_rows)
        for output in plan.outputs:
            if output.reason is not None:
                tell(screen, f"{output.name}: {output.reason}.")
            if output.ages_us:
                note(screen, f"{output.name}: {_assumed(plan, output)}.")
        if plan.change is not None:
            tell(screen, f"The next run keeps steps where the storage has them: {plan.change.sentence}.")

    def held(self, plan: Plan) -> str | None:
        return "all outputs are in time" if plan.outputs else None

    def failing(self, plan: Plan) -> str | None:
        unproven = sum(not output.holds for output in plan.outputs)
        in_all = counted(len(plan.outputs), "output")
        return f"[red]Not proven[/] for {unproven} of {in_all}." if unproven else None

    def result_record(self, result: SimulationResult) -> dict[str, Any]:
        if not result.steps:
            return {}
        return {
            "outputs": [_output_record(output) for output in result.outputs],
            "steps": [_step_record(step) for step in result.steps],
        }

    def show_result(self, screen: Console, result: SimulationResult, all_rows: bool) -> None:
        if not result.steps:
            return
        of_outputs: Columns[OutputResult] = {
            "output": lambda output: output.name,
            ">deadline": lambda output: format_duration(output.deadline_us),
            ">rows": lambda output: str(output.rows),
            ">misses": lambda output: f"[red]{output.misses}[/]" if output.misses else "0",
            ">p50": lambda output: format_duration(output.latency_p50_us),
            ">p95": lambda output: format_duration(output.latency_p95_us),
            ">max": lambda output: format_duration(output.latency_max_us),
            **(_OF_RECOVERY if any(output.recovery for output in result.outputs) else {}),
        }
        show_rows(screen, "Outputs", result.outputs, all_rows, of_outputs)
        of_steps: Columns[StepResult] = {
            "step": lambda step: step.name,
            "node": lambda step: step.node,
            ">sub-deadline": lambda step: format_duration(step.sub_deadline_us),
            ">jobs": lambda step: str(step.jobs),
            ">misses": lambda step: str(step.misses),
            ">backlog": lambda step: str(step.backlog),
        }
        show_rows(screen, "Steps", result.steps, all_rows, of_steps)
        screen.print()

    def missed(self, result: SimulationResult) -> str | None:
        missed = sum(output.misses > 0 for output in result.outputs)
        return f"[red]Missed[/]: deadlines of {missed} of the outputs." if missed else None


def _recovered_in(output: OutputResult) -> str:
    recovery = output.recovery
    if recovery is None or recovery.ended is None:
        return "-" if recovery is None else "not yet"
    return format_duration(recovery.ended - recovery.entered)


def _promised(output: OutputResult) -> str:
    recovery = output.recovery
    if recovery is None or recovery.due is None:
        return "-"
    return format_duration(recovery.due - recovery.entered, up=True)


_OF_RECOVERY: Final[Columns[OutputResult]] = {">recovered in": _recovered_in, ">promised": _promised}


def _assumed(plan: Plan, output: OutputPlan) -> str:
    """What an output assumes of its feeds' records."""
    ages = []
    for name, age_us in output.ages_us.items():
        by_default = plan.warehouse.feeds[name].age_us is None
        source = ", its `timestamp_jitter`, as it has no `age`" if by_default else ""
        ages.append(f"at most {format_duration(age_us, up=True)} old for {name}{source}")
    return f"assumes that a file's records, when it is found, are {'; '.join(ages)}"


def _show_steps(screen: Console, placed: StepPlacement, all_rows: bool) -> None:
    columns: Columns[str] = {
        "step": lambda step: step,
        "node": lambda step: placed.nodes[step],
        ">cost": lambda step: format_duration(placed.costs_us[step], up=True),
        ">sub-deadline": lambda step: format_duration(placed.sub_deadlines_us[step], down=True),
    }
    show_rows(screen, "Steps", list(placed.nodes), all_rows, columns)
    screen.print()


def _record(output: OutputPlan) -> dict[str, Any]:
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
        "assumes": [{"feed": feed, "age": seconds(age_us)} for feed, age_us in output.ages_us.items()],
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
        "recovery": recovery_record(output.recovery),
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
