"""The kinds of work: how each enters a kernel, and its events in journals.

A new kind of work is a folder beside `kernel/tables` and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from freshline.kernel.assembly.context import Assembly
from freshline.kernel.assembly.request_tasks import add_class_tasks
from freshline.kernel.assembly.step_tasks import add_node_pools, add_step_tasks
from freshline.kernel.assembly.table_tasks import add_table_tasks
from freshline.kernel.core.events import EVENTS as OF_ALL_KINDS
from freshline.kernel.core.events import Event
from freshline.kernel.core.node_events import EVENTS as OF_NODES
from freshline.kernel.queries.events import EVENTS as OF_QUERIES
from freshline.kernel.recovery.events import EVENTS as OF_RECOVERY
from freshline.kernel.requests.events import EVENTS as OF_REQUESTS
from freshline.kernel.steps.events import EVENTS as OF_STEPS
from freshline.kernel.tables.events import EVENTS as OF_TABLES


class KernelKind(NamedTuple):
    """What assembly and replay know of a kind of work."""

    events: tuple[type[Event], ...]
    # Add tasks to the kernel, and pools after those of the plan; None: the kind has none of its own.
    add_tasks: Callable[[Assembly], None] | None = None
    add_pools: Callable[[Assembly], None] | None = None


# In the order in which tasks are added: a table may read steps. Queries are added with their pools.
KINDS: Final[list[KernelKind]] = [
    KernelKind((*OF_ALL_KINDS, *OF_NODES)),
    KernelKind(OF_STEPS, add_step_tasks, add_node_pools),
    KernelKind((*OF_TABLES, *OF_RECOVERY), add_table_tasks),
    KernelKind(OF_REQUESTS, add_class_tasks),
    KernelKind(OF_QUERIES),
]
