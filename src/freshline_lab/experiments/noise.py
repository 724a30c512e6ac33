"""How much processor time others took from a run: noise that no scheduler can see or prevent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

_PROC: Final = Path("/proc")
_STEAL: Final = 7  # of user, nice, system, idle, iowait, irq, softirq, steal, and guests (part of user)
_IDLE: Final = (3, 4)
_PARENT: Final = 1  # place of the parent in the fields after a process's name
_PROCESS_TICKS: Final = slice(11, 15)  # user, system, and both of ended children
_TICKS_A_NS: Final = os.sysconf("SC_CLK_TCK") / 1e9
_EVERY_S: Final = 1.0
WINDOW: Final = 3  # samples


class _Look(NamedTuple):
    """A sample, in ticks since the start."""

    at: float
    stolen: int  # by the host
    kept: float  # at most, by other processes from this run
    total: int


class Noise:
    """Samples every second from entering to leaving; without /proc it sees nothing.

    It sees two things. The host may give the processors to other machines. And other processes may run while
    threads of this run wait for a processor: they keep from the run at most what they ran, and at most what
    the run waited. A process that takes only spare time keeps nothing from the run.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._looks: list[_Look] = []
        self._others = 0  # ticks of other processes
        self._waits: dict[str, int] = {}  # by thread of the run: nanoseconds of waiting
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="noise", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        try:
            ticks = [int(word) for word in _words(self._proc / "stat")[1 : _STEAL + 2]]
        except (OSError, ValueError):
            return
        if len(ticks) <= _STEAL:
            return
        own = self._own_processes()
        busy = sum(ticks[:_STEAL]) - sum(ticks[idle] for idle in _IDLE)
        before, self._others = self._others, max(self._others, busy - sum(own.values()))
        waited = self._waited_ns(own) * _TICKS_A_NS
        kept = self._looks[-1].kept + min(self._others - before, waited) if self._looks else 0.0
        self._looks.append(_Look(time.time(), ticks[_STEAL], kept, sum(ticks)))

    def _own_processes(self) -> dict[str, int]:
        """This process and its descendants, with their ticks. An ended child's ticks count for its parent."""
        children: dict[str, list[str]] = {}
        ticks: dict[str, int] = {}
        for process in self._proc.iterdir():
            if process.name.isdigit():
                with suppress(OSError, ValueError, IndexError):  # it has just ended
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                    children.setdefault(fields[_PARENT], []).append(process.name)
                    ticks[process.name] = sum(map(int, fields[_PROCESS_TICKS]))
        return {process: ticks.get(process, 0) for process in _below(str(os.getpid()), children)}

    def _waited_ns(self, processes: Iterable[str]) -> int:
        """How long all threads of the run waited for a processor since the last sample."""
        waits: dict[str, int] = {}
        for process in processes:
            with suppress(OSError):
                for thread in (self._proc / process / "task").iterdir():
                    with suppress(OSError, ValueError, IndexError):
                        waits[thread.name] = int(_words(thread / "schedstat")[1])
        waited = sum(now - self._waits.get(thread, 0) for thread, now in waits.items())
        self._waits = waits
        return waited

    def shares(self, since: float, until: float) -> tuple[float, float] | None:
        """The shares of the time between two instants (Unix time): taken by the host, and at most by other
        processes. It uses the samples around them. None: unknown."""
        before = [look for look in self._looks if look.at <= since]
        after = [look for look in self._looks if look.at >= until]
        return _shares(before[-1], after[0]) if before and after else None

    def beside(self, since: float, until: float, least: float = 0.0) -> str:
        """The same as the end of a sentence; empty if it is below that share or unknown."""
        found = self.shares(since, until)
        if found is None:
            return ""
        host, others = found
        said = f"; the host gave {host:.0%} to others" if host >= least else ""
        if others >= least:
            said += f"; other processes kept up to {others:.0%} of the processors from it"
        return said

    def sentence(self, start: float) -> str:
        """The shares of the whole time, and the worst few seconds, counted from `start` (Unix time)."""
        looks = self._looks
        if len(looks) <= WINDOW:
            return "how much of the processors' time others took is not known"
        host, others = _shares(looks[0], looks[-1])
        host_worst, others_worst = (self._worst(kind, start) for kind in (0, 1))
        return (
            f"of the processors' time the host gave {host:.0%} to others, {host_worst}; other processes kept "
            f"up to {others:.0%} of it from the run, {others_worst}"
        )

    def _worst(self, kind: int, start: float) -> str:
        worst, since, until = max(
            (_shares(first, last)[kind], first.at, last.at)
            for first, last in zip(self._looks, self._looks[WINDOW:], strict=False)
        )
        return f"at worst {worst:.0%} (second {since - start:.0f} to {until - start:.0f})"


def _words(file: Path) -> list[str]:
    """The words of the first line."""
    return file.read_text().partition("\n")[0].split()


def _below(process: str, children: dict[str, list[str]]) -> Iterator[str]:
    yield process
    for child in children.get(process, ()):
        yield from _below(child, children)


def _shares(first: _Look, last: _Look) -> tuple[float, float]:
    """The shares of the host and of other processes."""
    total = max(1, last.total - first.total)
    return (last.stolen - first.stolen) / total, (last.kept - first.kept) / total
