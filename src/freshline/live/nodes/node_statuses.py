"""A warehouse on several nodes as one: what each node tells of itself, put together."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.live.status.status import Progress, WarehouseStatus
from freshline.storage.control.layout import StorageLayout

# A runner writes its status about once a second.
_SILENCE_MAX_US: Final = 10 * SECOND


def read_statuses(warehouse: Warehouse, layout: StorageLayout) -> list[WarehouseStatus]:
    """What the nodes of a warehouse last told, but for those that have never run; InputError if none has."""
    controls = layout.controls(warehouse.nodes)
    found = [WarehouseStatus.read(control.status) for control in controls if control.status.exists()]
    return found or [WarehouseStatus.read(controls[0].status)]


def runs_now(status: WarehouseStatus, now_us: int) -> bool:
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


def as_one(warehouse: Warehouse, statuses: Sequence[WarehouseStatus]) -> WarehouseStatus:
    """The warehouse by what its nodes told, or its only run did."""
    if not warehouse.nodes:
        return statuses[0]
    outputs = [name for name, step in warehouse.steps.items() if step.deadline_us is not None]
    return together(statuses, [*warehouse.stored], {name: _loading(warehouse, name) for name in outputs})


def _loading(warehouse: Warehouse, output: str) -> list[str]:
    """The steps that load what an output is computed from."""
    found, ahead = {output}, [output]
    while ahead:
        sources = set(warehouse.steps[ahead.pop()].sources) - found
        found |= sources
        ahead += sources
    return [name for name in warehouse.steps if name in found and warehouse.steps[name].feed is not None]


def _starting(status: WarehouseStatus) -> Progress | None:
    """How far a node's start is, with its name."""
    starting = status.starting
    return None if starting is None else replace(starting, doing=f"node {status.node}: {starting.doing}")


def together(
    statuses: Sequence[WarehouseStatus], tables: Sequence[str], upstream: Mapping[str, Sequence[str]]
) -> WarehouseStatus:
    """The status of a warehouse by those of its nodes, of which there is at least one.

    `tables` are the names of all tables and steps, in the order of definition; `upstream` are, by output, the
    steps that load what it is computed from. A record that is late there reaches no output: it has missed
    each. Of a node that has not run for long there may be steps that are elsewhere by now, or gone.
    """
    first = statuses[0]
    newest_last = sorted(statuses, key=lambda status: status.at_us)
    told = {step.name: step for status in newest_last for step in status.steps}
    steps = [told[name] for name in tables if name in told]
    late = {step.name: step.rows_late for step in steps}
    ages = {output.name: output for status in newest_last for output in status.outputs}
    outputs = [
        replace(ages[name], misses=ages[name].misses + sum(late.get(each, 0) for each in upstream[name]))
        for name in tables
        if name in ages and name in upstream
    ]
    periodic = {table.name: table for status in newest_last for table in status.tables}
    tracks = [track for status in statuses for track in status.tracks]
    return replace(
        first,
        node=None,
        at_us=max(status.at_us for status in statuses),
        started_us=min(status.started_us for status in statuses),
        tables=tuple(periodic[name] for name in tables if name in periodic),
        tracks=tuple(replace(track, number=number) for number, track in enumerate(tracks)),
        broken_assumptions=tuple(
            f"{status.node}: {line}" for status in statuses for line in status.broken_assumptions
        ),
        quarantined=max(status.quarantined for status in statuses),
        recoveries=tuple(line for status in statuses for line in status.recoveries),
        pools=tuple(pool for status in statuses for pool in status.pools),
        queries=tuple(query for status in statuses for query in status.queries),
        classes=tuple(each for status in statuses for each in status.classes),
        starting=next((_starting(status) for status in statuses if status.starting is not None), None),
        steps=tuple(steps),
        outputs=tuple(outputs),
        placement=next((each.placement for each in reversed(newest_last) if each.placement), None),
    )
