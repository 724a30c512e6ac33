"""Reports the progress of a run's start."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from freshline.base.clock import clock
from freshline.live.status.status import Progress, WarehouseStatus


class StartUp:
    """Writes the status until the run itself does; `listener` receives the progress too.

    `node` and `sections` are for a warehouse with nodes. If the start fails, the status of the run before is
    restored.
    """

    def __init__(
        self,
        name: str,
        run_id: str,
        path: Path,
        listener: Callable[[Progress], None] | None = None,
        node: str | None = None,
        sections: Mapping[str, tuple[Any, ...]] | None = None,
    ) -> None:
        self._name = name
        self._run_id = run_id
        self._path = path
        self._listener = listener
        self._node = node
        self._sections = sections or {}
        self._started = clock()
        self._before: bytes | None = None
        self._last: bytes | None = None
        self._told: Progress | None = None

    def open(self) -> None:
        """Begins to write the status, once this run holds the lease."""
        with suppress(OSError):
            self._before = self._path.read_bytes()

    def say(self, progress: Progress) -> None:
        if progress == self._told:
            return
        self._told = progress
        status = WarehouseStatus(
            name=self._name,
            run_id=self._run_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            at_us=clock(),
            started_us=self._started,
            tracks=(),
            broken_assumptions=(),
            quarantined=0,
            starting=progress,
            node=self._node,
            sections=self._sections,
        )
        with suppress(OSError):  # a full disk; the file's own time shows that it is old
            status.write(self._path)
            self._last = self._path.read_bytes()
        if self._listener is not None:
            self._listener(progress)

    def close(self) -> None:
        with suppress(OSError):
            if self._last is None or self._path.read_bytes() != self._last:
                return
            if self._before is None:
                self._path.unlink()
            else:
                self._path.write_bytes(self._before)
