"""Reports the table that holds a query back: its windows end more than a window before another table does."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from freshline.base.duration import format_duration, seconds
from freshline.kernel.queries.iteration import HeldBack
from freshline.kernel.queries.task import QueryTask

_logger = logging.getLogger(__name__)


def held_back_record(held: HeldBack | None) -> dict[str, Any]:
    """For an answer and a status: the table, and how far it is behind the query's freshest one, if known."""
    if held is None:
        return {"held_back_by": None, "behind": None}
    return {"held_back_by": held.table, "behind": seconds(held.behind_us) if held.freshness > 0 else None}


def held_back_line(table: str, behind_us: int | None) -> str:
    """A sentence without a full stop; None: nothing was loaded into the table yet."""
    if behind_us is None:
        return f"{table} holds it back: nothing was loaded into it yet"
    behind = format_duration(behind_us)
    return f"{table} holds it back: it is {behind} behind the freshest table, which is more than the window"


class HeldBackLog:
    """Writes to the log which table holds a query back, once for each. Only the driver's thread uses it."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()  # query and table

    def look(self, tasks: Iterable[QueryTask]) -> None:
        for task in tasks:
            held = task.held_back()
            # A table that gets its first rows in a moment is no reason for a warning.
            if held is not None and held.freshness > 0 and (task.name, held.table) not in self._told:
                self._told.add((task.name, held.table))
                _logger.warning("query %s: %s", task.name, held_back_line(held.table, held.behind_us))
