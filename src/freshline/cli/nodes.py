"""`freshline run` of a warehouse with nodes: one process for each node on this machine."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.plain_progress import PlainProgress
from freshline.cli.shared import say
from freshline.definitions.sections.nodes import is_local
from freshline.definitions.warehouse import Warehouse
from freshline.live.nodes.node_statuses import as_one, read_statuses
from freshline.live.nodes.supervisor import Supervisor
from freshline.live.status.status import WarehouseStatus
from freshline.live.status.view import render
from freshline.storage.control.layout import StorageLayout

_LOOK_EVERY_S = 0.5


class RunningNodes:
    """The processes of nodes on this machine, until they end, receive a signal, or reach their duration."""

    def __init__(
        self, warehouse: Warehouse, project: Path, storage: Path, options: Sequence[str], for_us: int | None
    ) -> None:
        self._warehouse = warehouse
        self._layout = StorageLayout(storage)
        self._for_us = for_us
        self._since_us = clock()
        self._look_at = 0.0
        self._end_at: float | None = None
        self._show: Callable[[WarehouseStatus], None] | None = None
        self.on_all_run: Callable[[], None] | None = None  # called once, when all nodes run
        self.stopped_because: str | None = None
        self.said: list[str] | None = None  # about the placement of steps; None before it is known
        here = [name for name, node in warehouse.nodes.items() if is_local(node.master)]
        if not here:
            what = "none of the nodes has a local master"
            raise InputError(
                what, "Start each with `freshline run --node NAME`, where its cluster can be reached"
            )
        for name in warehouse.nodes:
            if name not in here:
                say(f"node {name} is not on this machine: start it with `freshline run --node {name}`")
        command = [sys.executable, "-m", "freshline", "run", "-p", str(project), "--tied", *options]
        self._supervisor = Supervisor(here, lambda node: [*command, "--node", node], say)
        for node in here:
            self._layout.control(node).drained.unlink(missing_ok=True)

    def run(self, screen: Console | None) -> int:
        """Runs the nodes and returns their highest exit code."""
        signal.signal(signal.SIGINT, lambda *_: self._stop("interrupted"))
        signal.signal(signal.SIGTERM, lambda *_: self._stop("terminated"))
        if screen is None or not screen.is_terminal:
            self._show = None if screen is None else PlainProgress().hear
            return self._supervisor.run(self._look)
        with Live(console=screen, refresh_per_second=4, transient=True) as live:
            self._show = lambda status: live.update(render(status, clock()))
            return self._supervisor.run(self._look)

    def status(self) -> WarehouseStatus | None:
        """The combined status of the nodes in this run; None before one has reported."""
        try:
            statuses = read_statuses(self._warehouse, self._layout)
        except InputError:
            return None
        current = [status for status in statuses if status.at_us >= self._since_us]
        return as_one(self._warehouse, current) if current else None

    def _stop(self, why: str) -> None:
        self.stopped_because = self.stopped_because or why
        self._supervisor.stop()

    def _look(self) -> None:
        """Looks at the nodes from time to time, and stops them after their duration."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY_S
        if self._for_us is not None and self._end_at is None and self._all_run():
            self._end_at = now + self._for_us / SECOND  # counts from the moment when all of them run
            if self.on_all_run is not None:
                self.on_all_run()
        if self._end_at is not None and now >= self._end_at and self.stopped_because is None:
            self._stop("its time is over")
        self.look()

    def look(self) -> None:
        """Shows the status of all nodes; reports the shortcomings of the placement of steps once."""
        status = None if self._show is None and self.said is not None else self.status()
        if self.said is None and status is not None and status.placement is not None:
            self.said = [*status.placement.shortcomings]
            for sentence in self.said:
                say(sentence)
        if self._show is not None and status is not None:
            self._show(status)

    def _all_run(self) -> bool:
        try:
            statuses = read_statuses(self._warehouse, self._layout)
        except InputError:
            return False
        running = {
            status.node
            for status in statuses
            if status.started_us >= self._since_us and not status.is_opening
        }
        return running >= self._supervisor.processes.keys() and bool(running)
