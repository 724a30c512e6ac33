"""The instants at which the kernel wants to be called again."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshline.kernel.release import Release

NEVER = 1 << 62


class Timers:
    """A heap of (instant, sequence, rule). Timers of one instant go off in the order they were set."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Release]] = []
        self._sequence = 0

    def set(self, at: int, rule: Release) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, rule))

    def earliest(self) -> int:
        return self._heap[0][0] if self._heap else NEVER

    def go_off(self, now: int) -> None:
        """Lets every timer up to now go off, a late one with the instant it was set for."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, rule = heap[0]
            # The rule may set timers itself, so its own entry is put aside only afterwards: it is still
            # the first, as nothing is set for an instant before `at`.
            again = rule.due(at)
            if again is None:
                heappop(heap)
            else:
                self._sequence += 1
                heapreplace(heap, (again, self._sequence, rule))

    def __len__(self) -> int:
        return len(self._heap)
