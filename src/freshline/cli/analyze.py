"""`freshline analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from freshline.analysis.taskset import analyze as analyze_task_set
from freshline.analysis.taskset import parse_task_set
from freshline.cli.shared import JsonOption, console, grid, print_json
from freshline.definitions.errors import InputError


def analyze(
    tasks: Annotated[Path, typer.Argument(help="A JSON file: tracks, and tasks with cost and period.")],
    as_json: JsonOption = False,
) -> None:
    """Run the schedulability analyses on a plain task set.

    The file holds {"tracks": 2, "tasks": [{"name": "a", "cost": "5", "period": "20"}]}; a task may have a
    "deadline" and a "phase". Numbers may be written as decimal strings.

    Example: freshline analyze tasks.json --json
    """
    try:
        text = tasks.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {tasks}: {error}", "Name a readable JSON file") from error
    task_set = parse_task_set(text)
    result = analyze_task_set(task_set)
    if as_json:
        print_json(result)
    else:
        _show(console(), task_set.names, task_set.tracks, result)


def _show(screen: Console, names: Sequence[str], tracks: int, result: dict[str, Any]) -> None:
    rm, np_edf, np_gedf, gedf = (result[key] for key in ("rm", "np_edf_one_track", "np_gedf", "gedf"))
    screen.print(f"Utilisation {result['utilization']:.4f} on {tracks} tracks.", highlight=False)
    if rm is not None:
        screen.print(f"Rate monotonic, preemptive: {_yes(rm['schedulable'])}.", highlight=False)
    if np_edf is not None:
        screen.print(f"EDF, non-preemptive: {_yes(np_edf['schedulable'])}.", highlight=False)
    columns = {
        "RM response": rm and rm["response_times"],
        "NP-GEDF tardiness ≤": np_gedf and np_gedf["tardiness"],
        "GEDF tardiness ≤ (Devi–Anderson)": gedf and gedf["devi_anderson"],
        "GEDF response ≤ (compliant vector)": gedf and gedf["compliant_vector"],
    }
    shown = {name: values for name, values in columns.items() if values is not None}
    table = grid("", {"task": False, **dict.fromkeys(shown, True)})
    for row, name in enumerate(names):
        table.add_row(name, *(_number(values[row]) for values in shown.values()))
    screen.print(table)


def _yes(schedulable: bool | None) -> str:
    return "undecided" if schedulable is None else "schedulable" if schedulable else "not schedulable"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
