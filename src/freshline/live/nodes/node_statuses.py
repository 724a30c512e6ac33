"""Merges the statuses of a warehouse's nodes into one."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.live import kinds_of_work
from freshline.live.nodes.output_recoveries import with_recoveries
from freshline.live.status.section import NodeMerge
from freshline.live.status.status import Progress, WarehouseStatus
from freshline.storage.control.layout import StorageLayout

# A runner writes its status about once a second.
_SILENCE_MAX_US: Final = 10 * SECOND


def read_statuses(warehouse: Warehouse, layout: StorageLayout) -> list[WarehouseStatus]:
    """The last statuses of all nodes that have ever run; InputError if none has."""
    controls = layout.controls(warehouse.nodes)
    found = [WarehouseStatus.read(control.status) for control in controls if control.status.exists()]
    return found or [WarehouseStatus.read(controls[0].status)]


def runs_now(status: WarehouseStatus, now_us: int) -> bool:
    """Whether the runner of this status still runs, as far as this process can see.

    A runner that starts writes its status at each step of the start, which may take long.
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
        return True  # the process exists and has another owner
    return True


def as_one(warehouse: Warehouse, statuses: Sequence[WarehouseStatus]) -> WarehouseStatus:
    """The status of the warehouse from those of its nodes or its only run."""
    if not warehouse.nodes:
        return statuses[0]
    outputs = [name for name, step in warehouse.steps.items() if step.deadline_us is not None]
    loading = {name: _loading(warehouse, name) for name in outputs}
    return with_recoveries(warehouse, together(statuses, [*warehouse.stored], loading))


def _loading(warehouse: Warehouse, output: str) -> list[str]:
    """The steps upstream of an output that load files."""
    found, ahead = {output}, [output]
    while ahead:
        sources = set(warehouse.steps[ahead.pop()].sources) - found
        found |= sources
        ahead += sources
    return [name for name in warehouse.steps if name in found and warehouse.steps[name].feed is not None]


def _starting(status: WarehouseStatus) -> Progress | None:
    """The progress of a node's start, with its name."""
    starting = status.starting
    return None if starting is None else replace(starting, doing=f"node {status.node}: {starting.doing}")


def together(
    statuses: Sequence[WarehouseStatus], tables: Sequence[str], upstream: Mapping[str, Sequence[str]]
) -> WarehouseStatus:
    """The status of a warehouse from those of its nodes, at least one.

    `tables` are the names of all tables and steps, in the order of definition; `upstream` has, by output, the
    steps upstream that load files. A stopped node's old status may have steps that have moved or are gone.
    """
    newest_last = sorted(statuses, key=lambda status: status.at_us)
    nodes = NodeMerge(statuses, newest_last, tables, upstream)
    tracks = [track for status in statuses for track in status.tracks]
    return replace(
        statuses[0],
        node=None,
        at_us=newest_last[-1].at_us,
        started_us=min(status.started_us for status in statuses),
        tracks=tuple(replace(track, number=number) for number, track in enumerate(tracks)),
        broken_assumptions=tuple(
            f"{status.node}: {line}" for status in statuses for line in status.broken_assumptions
        ),
        quarantined=max(status.quarantined for status in statuses),
        recoveries=tuple(line for status in statuses for line in status.recoveries),
        pools=tuple(pool for status in statuses for pool in status.pools),
        starting=next((_starting(status) for status in statuses if status.starting is not None), None),
        sections={section.name: section.merged(nodes) for section in kinds_of_work.sections()},
    )
