"""What the kinds of work are told when a kernel is put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.remote_table import RemoteTable
from freshline.planning.plan.plan import Plan, PoolPlan


@dataclass(frozen=True)
class Assembly:
    """A kernel that is being put together, and of what."""

    kernel: Kernel
    plan: Plan
    freshness: Mapping[str, int | None] | None = None  # None: all tables are empty, at instant 0
    tracks_from: int = 0  # the number of its first track
    live: bool = False  # files take a moment to be found
    node: str | None = None  # only what runs there; None: everything

    @property
    def warehouse(self) -> Warehouse:
        return self.plan.warehouse

    @cached_property
    def pools(self) -> list[PoolPlan]:
        """Those that run here."""
        defined = self.warehouse.pools
        return [pool for pool in self.plan.pools if self.node in (None, defined[pool.name].node)]

    @property
    def next_track(self) -> int:
        """The number of the next pool's first track."""
        return self.tracks_from + sum(pool.tracks for pool in self.kernel.pools)

    def found(self, name: str) -> int | None:
        """How far a table is loaded; None where nothing was loaded yet."""
        return 0 if self.freshness is None else self.freshness.get(name)

    def elsewhere(self, name: str) -> RemoteTable:
        """A table that another kernel updates, as this one knows it."""
        return elsewhere(self.kernel, name, self.found(name) or 0)


def elsewhere(kernel: Kernel, name: str, freshness: int = 0) -> RemoteTable:
    """A table that another kernel updates; it is as fresh as that where it was not known before."""
    found = kernel.elsewhere.setdefault(name, RemoteTable(name, freshness))
    assert isinstance(found, RemoteTable)
    return found
