"""Outputs that recover after an outage of a feed: the files that wait, and the promised end.

The step that loads a feed, its output and the steps between may be on several nodes. So it is computed
from the merged status of all nodes.
"""

from __future__ import annotations

from dataclasses import replace

from freshline.definitions.warehouse import Warehouse
from freshline.live.nodes.step_status import OUTPUTS, PLACEMENT, STEPS, OutputStatus, StepStatus
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.recoveries import RecoveryDue, over_by
from freshline.planning.plan.step_placement import StepPlacement
from freshline.planning.plan.step_promises import Backlog, StepPromises
from freshline.planning.plan.step_recovery import StepRecovery


def with_recoveries(warehouse: Warehouse, status: WarehouseStatus) -> WarehouseStatus:
    """The status of all nodes, with the recoveries of its outputs."""
    steps = {row.name: row for row in status.rows(STEPS)}
    placed = next((row.step_placement for row in status.rows(PLACEMENT)), None)
    recovering = {name for name, row in steps.items() if row.recovering}
    # The file may have been changed since the run began.
    if placed is None or not recovering or set(placed.nodes) != set(warehouse.steps):
        return status
    recovery = StepRecovery(warehouse, placed)
    dues = _dues(recovery, placed, steps)
    outputs, lines = [], []
    for row in status.rows(OUTPUTS):
        above = recovery.upstream.get(row.name, frozenset())
        if recovering.isdisjoint(above):
            outputs.append(row)
            continue
        waiting = {
            feed: row.files_waiting
            for name, row in steps.items()
            if name in above and row.recovering and (feed := warehouse.steps[name].feed) is not None
        }
        found = replace(
            row,
            recovering=True,
            files_waiting=sum(waiting.values()),
            recovery_due_us=dues.get(row.name),
        )
        outputs.append(found)
        lines.append(_line(found, waiting, status.at_us))
    return status.changed(outputs=tuple(outputs), recoveries=(*lines, *status.recoveries))


def _dues(
    recovery: StepRecovery, placed: StepPlacement, steps: dict[str, StepStatus]
) -> dict[str, int | None]:
    """By step: the promised end of its recovery. None if a node has to catch up after a restart."""
    if any(row.catching_up for row in steps.values()):
        return {}
    backlogs = [Backlog(row.name, *backlog) for row in steps.values() for backlog in row.backlogs]
    dues = StepPromises(recovery).dues(backlogs)
    return {name: due for name, due in dues.items() if name not in placed.unproven}


def _line(output: OutputStatus, waiting: dict[str, int], now: int) -> str:
    due_us = output.recovery_due_us
    said = f"{output.name}: recovering{over_by(None if due_us is None else RecoveryDue(due_us), now)}"
    files = [f"{number} files of {feed} wait" for feed, number in waiting.items() if number]
    return "; ".join([said, *files])
