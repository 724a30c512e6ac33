"""What tables read: something with a freshness, and who is to hear when that moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Follower(Protocol):
    """A task whose release follows the freshness of what it reads."""

    @property
    def name(self) -> str: ...

    def source_moved(self, now: int) -> None:
        """The freshness of something that it reads has moved."""


class Source(Protocol):
    """A table that others are computed from, whoever updates it."""

    @property
    def name(self) -> str: ...

    @property
    def freshness(self) -> int: ...

    @property
    def dependents(self) -> list[Follower]:
        """Those whose release follows its freshness."""

    @property
    def at_work(self) -> bool:
        """Whether it is to be updated here, or just is."""

    @property
    def reads(self) -> Sequence[Source]:
        """What it is computed from itself, as far as that is known here."""
