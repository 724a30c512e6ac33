"""Runs the nodes of a warehouse on this machine, each in a process that is restarted when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from freshline.base.back_off import back_off_us
from freshline.base.duration import SECOND

# The exit code of a node's process that has lost Spark or its lease.
LOST: Final = 3
# The exit code of a rejected node: other definitions, a lease in use. A retry would change nothing.
REFUSED: Final = 2
# The exit code of a run that ended with data left to load.
INCOMPLETE: Final = 4
# The exit codes of a process that ended as it should.
_NORMAL: Final = (0, 1, REFUSED, INCOMPLETE)
_POLL_S: Final = 0.1
# A process that ran this long has started well: its failures are counted from 0 again.
_WELL_AFTER_S: Final = 60.0
# After the second signal a node ends itself within 1.5 s.
_ABANDONED_MAX_S: Final = 1.8

Command = Callable[[str], Sequence[str]]  # by node


@dataclass
class _Node:
    """A node's process, or the end of the last one."""

    name: str
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    failures: int = 0  # since it last ran well
    told: int = 0  # how often its process was asked to end
    ended_by: int | None = None  # the exit code of the last process, if it is not restarted
    codes: list[int] = field(default_factory=list)  # of all ended processes


class Supervisor:
    """Starts processes and restarts those that die, at ever longer intervals.

    It does not restart a process that ended normally, with exit code 0, 1 or 4 or after a signal, or one
    that was rejected.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        command: Command,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes = [_Node(name) for name in nodes]
        self._command = command
        self._say = say
        self._clock = clock
        self._told = 0  # how often `stop` was called
        self._give_up_at: float | None = None

    def run(self, look: Callable[[], None] = lambda: None) -> int:
        """Runs until all have ended; returns their highest exit code. It calls `look` ten times a second."""
        try:
            while any(node.ended_by is None for node in self._nodes):
                for node in self._nodes:
                    self._attend(node)
                look()
                time.sleep(_POLL_S)
        finally:
            self._kill()
        return max(node.ended_by or 0 for node in self._nodes)

    def stop(self) -> None:
        """Asks all to end; the second time, to end at once. Safe in a signal's handler."""
        self._told += 1

    @property
    def processes(self) -> dict[str, int]:
        """The process numbers of running nodes, by node."""
        return {node.name: node.process.pid for node in self._nodes if node.process is not None}

    def _attend(self, node: _Node) -> None:
        if node.ended_by is not None:
            return
        if node.process is None:
            if self._told:
                node.ended_by = node.codes[-1] if node.codes and node.codes[-1] > 0 else 0
            elif self._clock() >= node.start_at:
                self._start(node)
            return
        code = node.process.poll()
        if code is not None:
            self._ended(node, code)
        else:
            self._tell(node)

    def _start(self, node: _Node) -> None:
        node.started = self._clock()
        # In a session of its own: the terminal's signals reach only this process, which passes them on.
        node.process = subprocess.Popen(
            self._command(node.name), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        node.told = 0

    def _tell(self, node: _Node) -> None:
        assert node.process is not None
        while node.told < min(self._told, 2):
            node.told += 1
            node.process.send_signal(signal.SIGTERM)
        if self._told > 1:
            self._give_up_at = self._give_up_at or self._clock() + _ABANDONED_MAX_S
            if self._clock() > self._give_up_at:
                self._end_group(node)

    def _ended(self, node: _Node, code: int) -> None:
        assert node.process is not None
        if node.process.stdin is not None:
            node.process.stdin.close()
        node.process = None
        node.codes.append(code)
        signalled = code in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        if self._told or signalled or code in _NORMAL:
            node.ended_by = code if code in _NORMAL else INCOMPLETE
            if code == REFUSED:
                self._say(f"node {node.name} does not run: it was refused")
            return
        lived_s = self._clock() - node.started
        node.failures = 1 if lived_s >= _WELL_AFTER_S else node.failures + 1
        wait_s = back_off_us(node.failures, SECOND) / SECOND
        node.start_at = self._clock() + wait_s
        self._say(f"node {node.name} {_died(code)}: it restarts in {wait_s:.0f} s")

    def _kill(self) -> None:
        """Kills all processes, so that none is left behind after an error."""
        for node in self._nodes:
            if node.process is not None:
                self._end_group(node)
                node.process.wait()

    def _end_group(self, node: _Node) -> None:
        assert node.process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(node.process.pid, signal.SIGKILL)


def _died(code: int) -> str:
    if code < 0:
        return f"was killed by signal {-code}"
    return "has lost Spark or its lease" if code == LOST else f"ended with exit code {code}"
