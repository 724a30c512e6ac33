"""`freshline status`."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any

import typer

from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    seconds,
    storage_path,
)
from freshline.definitions.duration import SECOND, format_duration
from freshline.live.status import TableStatus, WarehouseStatus, utc
from freshline.live.view import render
from freshline.storage.layout import Layout

# A runner writes its status about once a second.
_SILENCE_MAX_US = 10 * SECOND


def status(project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False) -> None:
    """Show how fresh the tables of a running warehouse are, from another terminal.

    Exit code 1: some table is staler than its target.

    Example: freshline status --json
    """
    last = WarehouseStatus.read(Layout(storage_path(project, load_project(project))).status)
    now_us = time.time_ns() // 1_000
    running = _runs(last, now_us)
    # Figures of a runner that has gone are told as they were: nothing has been watched since.
    as_of_us = now_us if running else last.at_us
    if not running:
        age = format_duration(now_us - last.at_us)
        print(
            f"No runner is running: these figures are {age} old, of process {last.pid} on {last.host}. "
            "Start one with `freshline run`.",
            file=sys.stderr,
        )
    if as_json:
        print_json(
            {
                "starting": None if last.starting is None or not running else vars(last.starting),
                "pools": [vars(pool) for pool in last.pools],
                "tables": [status_record(table, as_of_us) for table in last.tables],
            }
        )
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


def status_record(table: TableStatus, as_of_us: int) -> dict[str, Any]:
    """A table at an instant as JSON."""
    freshness_us = table.freshness_us
    return {
        "name": table.name,
        "state": table.state,
        "freshness": None if freshness_us is None else utc(freshness_us).isoformat(timespec="microseconds"),
        "lag": seconds(table.lag_us),
        "staleness": seconds(table.staleness_us(as_of_us)),
        "staleness_bound": seconds(table.staleness_bound_us),
        "target_lag": seconds(table.target_lag_us),
        "backlog": table.backlog,
        "unloaded": seconds(table.unloaded_us(as_of_us)),
        "recovery_due": None if table.recovery_due_us is None else seconds(table.recovery_due_us - as_of_us),
        "recovery_estimated": table.recovery_estimated,
    }
