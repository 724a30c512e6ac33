"""`freshline status`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import typer

from freshline.base.clock import clock
from freshline.base.duration import format_duration
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    storage_path,
)
from freshline.definitions.warehouse import Warehouse
from freshline.live.nodes.node_statuses import as_one, read_statuses, runs_now
from freshline.live.status.status import WarehouseStatus
from freshline.live.status.view import render
from freshline.storage.control.layout import StorageLayout


def status(project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False) -> None:
    """Show how fresh the tables of a running warehouse are, from another terminal.

    Exit code 1: some table is staler than its target.

    Example: freshline status --json
    """
    warehouse = load_project(project)
    statuses = read_statuses(warehouse, StorageLayout(storage_path(project, warehouse)))
    now_us = clock()
    runs = [runs_now(each, now_us) for each in statuses]
    told = [each if runs_now else each.of_the_past() for each, runs_now in zip(statuses, runs, strict=True)]
    running, last = any(runs), as_one(warehouse, told)
    # Figures of a runner that has ended are shown unchanged: nothing has been observed since.
    as_of_us = now_us if running else last.at_us
    for sentence in _silent(warehouse, statuses, runs, now_us):
        print(sentence, file=sys.stderr)
    if as_json:
        print_json(last.record(as_of_us) if running else {**last.record(as_of_us), "starting": None})
    else:
        console().print(render(last, now_us, running))
    raise typer.Exit(1 if any(table.misses_target(as_of_us) for table in last.tables) else 0)


def _silent(
    warehouse: Warehouse, statuses: Sequence[WarehouseStatus], runs: Sequence[bool], now_us: int
) -> Iterator[str]:
    """Yields which runners should run but do not."""
    if not any(runs):
        last = max(statuses, key=lambda each: each.at_us)
        age = format_duration(now_us - last.at_us)
        yield (
            f"No runner is running: these figures are {age} old, of process {last.pid} on {last.host}. "
            "Start one with `freshline run`."
        )
        return
    for each, running in zip(statuses, runs, strict=True):
        if not running:
            age = format_duration(now_us - each.at_us)
            yield f"Node {each.node} is not running: its figures are {age} old."
    for node in warehouse.nodes.keys() - {each.node for each in statuses}:
        yield f"Node {node} has not run yet."
