"""Draining on several nodes: each node reports which of its tables are final and waits for others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from freshline.base.atomic_write import replace_text
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import IDLE
from freshline.kernel.steps.task import StepTask
from freshline.kernel.tables.remote_table import RemoteTable
from freshline.kernel.tables.task import TableTask
from freshline.live.nodes.awaited_nodes import AwaitedNodes
from freshline.live.tables.node_share import NodeShare
from freshline.storage.control.control_folder import ControlFolder
from freshline.storage.delta.read_table import ReadTable


class DrainedTables:
    """The tables that are final: nothing is left to load for them or for their sources.

    This is known by table, not by node, since two nodes may read each other's tables.
    """

    def __init__(
        self,
        part: NodeShare,
        own: ControlFolder,
        others: Mapping[str, ControlFolder],
        tables: Mapping[str, ReadTable],
    ) -> None:
        self._part = part
        self._own = own
        self._others = others  # by node
        self._tables = tables  # own and followed ones
        self._told: dict[str, int] | None = None
        self._awaited = AwaitedNodes(others)

    def announce(self) -> None:
        """Reports that this node drains."""
        if self._told is None:
            self._tell({})

    def waits_in_vain(self, kernel: Kernel, now: int) -> str | None:
        """The reason why some awaited table will never be final; None as long as all may become so."""
        final, followed = self._final_elsewhere(kernel), self._part.followed
        return self._awaited.in_vain({node for name, node in followed.items() if name not in final}, now)

    def are_sources_final(self, kernel: Kernel, is_given_up: Callable[[str], bool]) -> bool:
        """Whether nothing more comes from other nodes. It also reports this node's final tables."""
        final = self._final_elsewhere(kernel)
        for name in self._part.whole.stored_order:
            table = self._part.local.stored.get(name)
            if table is not None and all(source in final for source in table.sources):
                task = kernel.task(name)
                if _is_idle(task) or is_given_up(name):
                    final[name] = self._tables[name].freshness or 0
        self._tell({name: at for name, at in final.items() if name in self._part.local.stored})
        return all(name in final for name in self._part.followed)

    def _final_elsewhere(self, kernel: Kernel) -> dict[str, int]:
        """The followed tables that are final on their nodes and whose last commit the kernel knows."""
        told: dict[str, int] = {}
        for control in self._others.values():
            told |= _read(control.drained)
        return {
            name: told[name]
            for name in self._part.followed
            if name in told and self._heard(kernel, name) >= told[name]
        }

    def _heard(self, kernel: Kernel, name: str) -> int:
        known = kernel.elsewhere.get(name)
        return known.freshness if isinstance(known, RemoteTable) else self._tables[name].freshness or 0

    def _tell(self, final: dict[str, int]) -> None:
        if final == self._told:
            return
        with suppress(OSError):  # a full disk: the next call reports it
            replace_text(self._own.drained, json.dumps(final))
            self._told = final


def _is_idle(task: object) -> bool:
    if isinstance(task, StepTask):
        return not task.at_work and not task.files
    return isinstance(task, TableTask) and task.state == IDLE


def _read(path: Path) -> dict[str, int]:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): int(at) for name, at in told.items()} if isinstance(told, dict) else {}
