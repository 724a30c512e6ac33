"""How much of the processors' time the host gave to others: noise that no scheduler can see or prevent."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_STAT: Final = Path("/proc/stat")
_STEAL: Final = 7  # of user, nice, system, idle, iowait, irq, softirq, steal, and guests (part of user)
_EVERY_S: Final = 1.0
WINDOW: Final = 3  # looks


class Stolen:
    """Looks every second from entering to leaving; where the system does not say it, nothing is seen."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._looks: list[tuple[float, int, int]] = []  # (instant, stolen, all), in ticks since the start
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stolen", daemon=True)

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
            ticks = [int(word) for word in self._stat.read_text().splitlines()[0].split()[1 : _STEAL + 2]]
        except (OSError, ValueError, IndexError):
            return
        if len(ticks) > _STEAL:
            self._looks.append((time.time(), ticks[_STEAL], sum(ticks)))

    def share(self, since: float, until: float) -> float | None:
        """Of the time between the two (Unix time, seconds), by the looks around them; None: not known."""
        before = [look for look in self._looks if look[0] <= since]
        after = [look for look in self._looks if look[0] >= until]
        return _share(before[-1], after[0]) if before and after else None

    def sentence(self, start: float) -> str:
        """The share of all the time, and the worst few seconds, counted from `start` (Unix time, seconds)."""
        looks = self._looks
        if len(looks) <= WINDOW:
            return "how much of the processors' time the host gave to others is not known"
        worst, since, until = max(
            (_share(first, last), first[0], last[0])
            for first, last in zip(looks, looks[WINDOW:], strict=False)
        )
        return (
            f"of the processors' time the host gave {_share(looks[0], looks[-1]):.0%} to others, at worst "
            f"{worst:.0%} (second {since - start:.0f} to {until - start:.0f})"
        )


def _share(first: tuple[float, int, int], last: tuple[float, int, int]) -> float:
    return (last[1] - first[1]) / max(1, last[2] - first[2])
