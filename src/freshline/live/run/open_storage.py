"""Opens the storage of a run: lease, scratch folder and placement of steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from freshline.base.duration import SECOND
from freshline.definitions.sections.nodes import is_local
from freshline.landing.directories import remember_directories
from freshline.live.nodes.node_join import join_nodes
from freshline.live.run.heartbeat import Heartbeat
from freshline.live.tables.run_context import RunSetup
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.control_folder import check_no_other
from freshline.storage.control.lease import Identity, Lease
from freshline.storage.control.permissions import modes_of
from freshline.storage.control.scratch import scratch_folder


class OpenStorage(NamedTuple):
    """What a run finds in its storage."""

    scratch: Path
    placed: StepPlacement | None  # the placement of steps
    died_at: int | None  # when the run before was last alive, if it died


def open_storage(site: RunSetup, run_id: str, stack: ExitStack, lose: Callable[[str], None]) -> OpenStorage:
    """Takes the lease, and makes the run's scratch folder."""
    layout, control = site.layout, site.control
    layout.prepare(control, private=is_local(site.master))
    stack.enter_context(modes_of(layout.root))
    identity = Identity.mine(run_id)
    lease = Lease.acquire(control.lease, identity)
    stack.callback(lease.release)
    heartbeat = Heartbeat(lease, lose)
    heartbeat.start()
    stack.callback(heartbeat.stop)
    check_no_other(layout.other_controls(site.warehouse.nodes), identity)
    control.clear(identity)
    layout.clear(site.landing)
    remember_directories(site.landing, control.landing)
    scratch = stack.enter_context(scratch_folder(control.scratch, identity, has_lease=True))
    placed = None if site.node is None else join_nodes(site.warehouse, site.node, layout, identity)
    died_at = None if lease.died_at is None else round(lease.died_at * SECOND)
    return OpenStorage(scratch, placed, died_at)
