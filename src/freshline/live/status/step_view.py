"""Outputs and steps on a screen: the late step is seen before the output is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from freshline.base.duration import format_duration
from freshline.live.status.screen_table import columns, count
from freshline.live.status.step_status import OutputStatus, StepStatus


def output_table(outputs: Sequence[OutputStatus]) -> Table:
    """The outputs, as they are now."""
    names = {"output": False, "node": False, "deadline": True, "rows": True, "missed": True}
    table = columns(names | {"p50": True, "p95": True, "max": True})
    for row in outputs:
        table.add_row(
            Text(row.name),
            Text(row.node),
            format_duration(row.deadline_us),
            count(row.rows),
            _missed(row.misses),
            *(format_duration(latency) for latency in (row.p50_us, row.p95_us)),
            Text(
                format_duration(row.max_us),
                style="red" if row.max_us is not None and row.max_us > row.deadline_us else "",
            ),
        )
    return table


def step_table(steps: Sequence[StepStatus]) -> Table:
    """The steps, as they are now."""
    table = columns(
        {"step": False, "node": False, "due after": True, "missed": True, "backlog": True, "rows": True}
        | {"late": True}
    )
    for row in steps:
        table.add_row(
            Text(row.name),
            Text(row.node),
            format_duration(row.sub_deadline_us),
            _missed(row.misses),
            count(row.backlog),
            count(row.rows),
            count(row.rows_late),
        )
    return table


def _missed(misses: int) -> Text:
    return Text(count(misses), style="red" if misses else "")
