"""Sources of tables: they have a freshness, and dependents that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Follower(Protocol):
    """A task whose release follows the freshness of what it reads."""

    @property
    def name(self) -> str: ...

    def source_moved(self, now: int) -> None:
        """The freshness of a source has moved."""


class Source(Protocol):
    """A table that others are computed from, local or remote."""

    @property
    def name(self) -> str: ...

    @property
    def freshness(self) -> int: ...

    @property
    def dependents(self) -> list[Follower]:
        """The tasks whose release follows its freshness."""

    @property
    def at_work(self) -> bool:
        """Whether an update of it waits or runs here."""

    @property
    def reads(self) -> Sequence[Source]:
        """Its own sources, as far as they are known here."""
