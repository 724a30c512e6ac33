"""Adds the service classes of a warehouse to a kernel."""

from __future__ import annotations

from freshline.kernel.assembly.context import Assembly
from freshline.kernel.requests.task import ClassTask


def add_class_tasks(assembly: Assembly) -> None:
    """Adds the classes whose pools run here; their places follow those of tables and queries."""
    warehouse, kernel = assembly.warehouse, assembly.kernel
    pools = {pool.name for pool in assembly.pools}
    first = len(warehouse.stored) + len(warehouse.queries)
    for place, (name, defined) in enumerate(warehouse.classes.items(), first):
        if defined.pool in pools:
            kernel.add(ClassTask(place, name, kernel.timers, kernel.outbox))
