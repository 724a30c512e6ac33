"""Finds nodes that a draining node waits for in vain, because they will never report their end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.live.nodes.node_statuses import runs_now
from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.control_folder import ControlFolder

# The supervisor restarts a dead node within a minute; then Spark has to start.
_PATIENCE_US: Final = 120 * SECOND


class AwaitedNodes:
    """The state of other nodes according to their control folders."""

    def __init__(self, controls: Mapping[str, ControlFolder]) -> None:
        self._controls = controls  # by node
        self._missing_since: dict[str, int] = {}  # by node

    def in_vain(self, nodes: Collection[str], now: int) -> str | None:
        """The reason why it is useless to wait for these nodes any longer; None if it is not."""
        missing = {node: why for node in nodes if (why := self._missing(node, now)) is not None}
        self._missing_since = {node: self._missing_since.get(node, now) for node in missing}
        for node, why in missing.items():
            if now - self._missing_since[node] > _PATIENCE_US:
                return f"node {node} {why}, so the tables computed from its tables are not complete"
        return None

    def _missing(self, node: str, now: int) -> str | None:
        control = self._controls[node]
        try:
            status = WarehouseStatus.read(control.status)
        except InputError:
            return "does not run"
        if not runs_now(status, now):
            return "does not run"
        if not status.is_opening and not control.drained.exists():
            return "runs without --drain"
        return None
