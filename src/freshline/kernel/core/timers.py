"""The instants at which the kernel wants to be called again."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

NEVER = 1 << 62


class Waiter(Protocol):
    """What a timer calls at its instant: a release rule, the end of a back-off."""

    def due(self, at: int) -> int | None:
        """The timer set for `at` went off. Returns the instant of the next one, if there is one."""


class Timers:
    """A heap of (instant, sequence, waiter). Timers of one instant go off in the order they were set."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter]] = []
        self._sequence = 0

    def set(self, at: int, waiter: Waiter) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, waiter))

    def drop(self, waiter: Waiter) -> None:
        """Removes the waiter's timers."""
        self._heap[:] = [entry for entry in self._heap if entry[2] is not waiter]
        heapify(self._heap)

    def keep(self, is_kept: Callable[[Waiter], bool]) -> None:
        """Removes the timers of all other waiters."""
        self._heap[:] = [entry for entry in self._heap if is_kept(entry[2])]
        heapify(self._heap)

    def earliest(self) -> int:
        return self._heap[0][0] if self._heap else NEVER

    def go_off(self, now: int) -> None:
        """Lets every timer up to now go off, a late one with the instant it was set for."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, waiter = heap[0]
            again = waiter.due(at)
            if again is None:
                heappop(heap)
            else:
                self._sequence += 1
                heapreplace(heap, (again, self._sequence, waiter))

    def __len__(self) -> int:
        return len(self._heap)
