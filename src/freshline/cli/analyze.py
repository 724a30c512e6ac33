"""`freshline analyze`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from freshline.cli.printing.grid import grid, tell
from freshline.cli.shared import JsonOption, console, print_json, read_input
from freshline.planning.analysis.taskset import TaskSet, parse_task_set
from freshline.planning.analysis.taskset import analyze as analyze_task_set
from freshline.planning.analysis.utilization import fits, readable
from freshline.planning.plan.advice import counted

_TITLES: Final = {
    "rm": "Rate monotonic, preemptive",
    "np_edf_one_track": "EDF, non-preemptive, on one track",
    "np_gedf": "Global EDF, non-preemptive (NP-GEDF)",
    "gedf": "Global EDF, preemptive (GEDF)",
}


def analyze(
    tasks: Annotated[Path, typer.Argument(help="A JSON file: tracks, and tasks with cost and period.")],
    as_json: JsonOption = False,
) -> None:
    """Run the schedulability analyses on a plain task set.

    The file holds {"tracks": 2, "tasks": [{"name": "a", "cost": "5", "period": "20"}]}; a task may have a
    "deadline" and a "phase". Numbers may be written as decimal strings.

    Example: freshline analyze tasks.json --json
    """
    task_set = read_input(tasks, parse_task_set)
    result = analyze_task_set(task_set)
    if as_json:
        print_json(result)
    else:
        _show(console(), task_set, result)


def _show(screen: Console, task_set: TaskSet, result: dict[str, Any]) -> None:
    rm, np_gedf, gedf = (result[key] for key in ("rm", "np_gedf", "gedf"))
    columns = {
        "RM response": rm and rm["response_times"],
        "NP-GEDF tardiness ≤": np_gedf and np_gedf["tardiness"],
        "GEDF tardiness ≤ (Devi–Anderson)": gedf and gedf["devi_anderson"],
        "GEDF response ≤ (compliant vector)": gedf and gedf["compliant_vector"],
    }
    shown = {name: values for name, values in columns.items() if values is not None}
    table = grid("", "task", *(f">{title}" for title in shown))
    for row, name in enumerate(task_set.names):
        table.add_row(name, *(_number(values[row]) for values in shown.values()))
    for line in _verdicts(task_set, result):
        tell(screen, line)
    if shown:
        screen.print(table)
    for name, reason in zip(task_set.names, (rm or {}).get("reasons", ()), strict=False):
        if reason is not None:
            tell(screen, f"{name}: its RM response is {reason}.")


def _verdicts(task_set: TaskSet, result: dict[str, Any]) -> Iterator[str]:
    """Yields a line for the utilisation and for every analysis: its result, or why there is none."""
    costs, periods, tracks = task_set.costs, task_set.periods, task_set.tracks
    used = readable(result["utilization"], tracks, fits(costs, periods, tracks), digits=4)
    yield f"Utilisation {used} on {counted(tracks, 'track')}."
    for key, title in _TITLES.items():
        answer = result[key]
        if answer is None:
            yield f"{title}: {result['reasons'][key]}."
        elif "schedulable" in answer:
            yield f"{title}: {answer.get('reason') or _yes(answer['schedulable'])}."
        elif "x" in answer:
            yield f"{title}: tardiness of at most the cost + x, x = {_number(answer['x'])}."


def _yes(schedulable: bool | None) -> str:
    return "undecided" if schedulable is None else "schedulable" if schedulable else "not schedulable"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
