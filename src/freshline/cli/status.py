"""`freshline status`."""

from __future__ import annotations

import os
import socket
import sys
import time

import typer

from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    storage_path,
)
from freshline.definitions.duration import SECOND, format_duration
from freshline.live.status import WarehouseStatus
from freshline.live.view import render
from freshline.storage.layout import Layout

# A runner writes its status about once a second.
_SILENCE_MAX_US = 10 * SECOND


def status(project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False) -> None:
    """Show how fresh the tables of a running warehouse are, from another terminal.

    Exit code 1: some table is staler than its target.

    Example: freshline status --json
    """
    last = WarehouseStatus.read(Layout(storage_path(project, load_project(project))).control().status)
    now_us = time.time_ns() // 1_000
    running = _runs(last, now_us)
    # Figures of a runner that has gone are told as they were: nothing has been watched since.
    as_of_us = now_us if running else last.at_us
    if not running:
        last = last.of_the_past()
        age = format_duration(now_us - last.at_us)
        print(
            f"No runner is running: these figures are {age} old, of process {last.pid} on {last.host}. "
            "Start one with `freshline run`.",
            file=sys.stderr,
        )
    if as_json:
        print_json(last.record(as_of_us) if running else {**last.record(as_of_us), "starting": None})
    else:
        console().print(render(last, now_us, running))
    raise typer.Exit(1 if any(table.misses_target(as_of_us) for table in last.tables) else 0)


def _runs(status: WarehouseStatus, now_us: int) -> bool:
    """Whether the runner that wrote this still runs, as far as can be seen from here.

    One that starts writes when it has come further, which may take its time.
    """
    is_here = status.host == socket.gethostname()
    if now_us - status.at_us > _SILENCE_MAX_US and not (is_here and status.is_opening):
        return False
    if not is_here:
        return True
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it is there, and somebody else's
    return True
