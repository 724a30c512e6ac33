"""Tables that another kernel updates: only their freshness is known here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from freshline.kernel.core.events import Event

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.tables.source import Follower, Source


class RemoteTable:
    """A source that another kernel updates."""

    at_work: ClassVar[bool] = False
    reads: ClassVar[Sequence[Source]] = ()

    def __init__(self, name: str, freshness: int = 0) -> None:
        self.name = name
        self.freshness = freshness
        self.dependents: list[Follower] = []
        self.came_at: int | None = None  # when the burst that it has loaded up to arrived at its source
        self.moved_at: int | None = None  # when it became that fresh, not when this kernel heard of it
        self.moved_in_recovery = False  # whether that commit was recovery

    def advanced(
        self, freshness: int, came_at: int | None, committed_at: int | None, now: int, recovery: bool = False
    ) -> None:
        assert freshness >= self.freshness, f"{self.name} went back from {self.freshness} to {freshness}"
        if freshness > self.freshness:
            self.freshness = freshness
            self.came_at = came_at
            self.moved_in_recovery = recovery
            # The other node's clock may be ahead of this one.
            self.moved_at = now if committed_at is None else min(now, committed_at)
            for dependent in self.dependents:
                dependent.source_moved(now)


@dataclass(slots=True, eq=False)
class RemoteAdvanced(Event):
    """A remote table has that freshness now. The event has the priority of a job's end."""

    word = "advanced"
    keys = (
        ("table", word),
        ("freshness", "freshness"),
        ("came_at", "came_at"),
        ("committed_at", "committed_at"),
        ("recovery", "recovery"),
    )
    table: str
    freshness: int
    came_at: int | None = None  # when the burst arrived at its source, if known
    committed_at: int | None = None  # if known: deadlines of its readers count from then on
    recovery: bool = False  # it has a backlog: what is made of it gives way to other work

    def take(self, kernel: Kernel, now: int) -> None:
        table = kernel.elsewhere.get(self.table)
        if table is not None:  # otherwise nothing here reads it
            table.advanced(self.freshness, self.came_at, self.committed_at, now, self.recovery)


def source_named(kernel: Kernel, name: str) -> Source:
    """The table of that name, local or remote."""
    found: Source = kernel.elsewhere.get(name) or cast(Any, kernel.task(name))
    return found
