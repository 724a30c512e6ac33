"""Notes about a run for its users: broken assumptions of the bounds, quarantined files, failures."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from operator import itemgetter
from threading import Lock

from freshline.base.clock import Clock, clock
from freshline.base.duration import format_duration
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.recovery.aus import given_up

_NOTES_MAX = 50


@dataclass(frozen=True, slots=True)
class Overruns:
    """A table's updates that took longer than assumed, and the worst of them."""

    count: int
    took_us: int
    assumed_us: int
    at: int

    def __str__(self) -> str:
        took, assumed = format_duration(self.took_us, up=True), format_duration(self.assumed_us)
        if self.count == 1:
            return f"an update took {took}, more than the assumed {assumed}"
        return f"{self.count} updates took longer than assumed, at worst {took} instead of {assumed}"


@dataclass(frozen=True, slots=True)
class FallBacks:
    """How often a pool fell back to `aus`, the last time and its reason."""

    count: int
    at: int
    why: str

    def __str__(self) -> str:
        return f"fell back to aus, {self.count} in all: {self.why}"


class RunNotes:
    """The latest notes, and how many files are in quarantine.

    All threads write notes. A lock makes that safe; no slow work is done under the lock.
    """

    def __init__(self, started: int, now: Clock = clock) -> None:
        self.started = started
        self._clock = now
        self._lock = Lock()
        self._latest: deque[tuple[int, str]] = deque(maxlen=_NOTES_MAX)
        # One note for each table and pool, or they would push out all others.
        self._overruns: dict[str, Overruns] = {}
        self._fall_backs: dict[str, FallBacks] = {}
        self._quarantined = 0

    def note(self, at: int, text: str) -> None:
        with self._lock:
            self._latest.append((at, text))

    def died(self, died_at: int, now: int) -> None:
        """Notes that the run before died: bounds and deadlines assume that tracks stay."""
        down = format_duration(max(0, now - died_at), up=True)
        self.note(now, f"the run before died: nothing was loaded for {down}, and what came meanwhile waited")

    def refused(self, feed: str, name: str, reason: str) -> None:
        """Notes a file that went to quarantine."""
        with self._lock:
            self._quarantined += 1
            self._latest.append((self._clock(), f"{feed}: {name} put into quarantine: {reason}"))

    @property
    def quarantined(self) -> int:
        """The last known number of files in quarantine."""
        return self._quarantined

    def counted(self, quarantined: int) -> None:
        """Sets the number of files in quarantine: users take files out, so they are counted again."""
        with self._lock:
            self._quarantined = quarantined

    def took(self, table: str, took_us: int, assumed_us: int, at: int) -> None:
        """Notes an update that took longer than assumed."""
        if took_us <= assumed_us:
            return
        with self._lock:
            worst = self._overruns.get(table, Overruns(0, 0, 0, 0))
            if took_us > worst.took_us:
                self._overruns[table] = Overruns(worst.count + 1, took_us, assumed_us, at)
            else:
                self._overruns[table] = replace(worst, count=worst.count + 1)

    def look(self, kernel: Kernel) -> None:
        """Notes the certificates that were given up since the last look."""
        for pool in kernel.pools:
            for at, why in given_up(pool):
                last = self._fall_backs.get(pool.name, FallBacks(0, -1, ""))
                if at > last.at:
                    with self._lock:
                        self._fall_backs[pool.name] = FallBacks(last.count + 1, at, why)

    @property
    def lines(self) -> list[str]:
        """The notes, oldest first. Overruns have the time of the worst one, fall-backs of the last."""
        with self._lock:
            notes = [
                *self._latest,
                *((worst.at, f"{table}: {worst}") for table, worst in self._overruns.items()),
                *((last.at, f"pool {pool} {last}") for pool, last in self._fall_backs.items()),
            ]
        notes.sort(key=itemgetter(0))
        return [f"+{format_duration(at - self.started)} {text}" for at, text in notes]
