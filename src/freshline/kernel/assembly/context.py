"""What each kind of work gets when a kernel is assembled."""

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
    """A kernel during its assembly, and the plan that it is built from."""

    kernel: Kernel
    plan: Plan
    freshness: Mapping[str, int | None] | None = None  # None: all tables are empty, at instant 0
    tracks_from: int = 0  # the number of the first track
    live: bool = False  # files take a moment to be found
    node: str | None = None  # only the work of that node; None: everything

    @property
    def warehouse(self) -> Warehouse:
        return self.plan.warehouse

    @cached_property
    def pools(self) -> list[PoolPlan]:
        """The pools that run here."""
        defined = self.warehouse.pools
        return [pool for pool in self.plan.pools if self.node in (None, defined[pool.name].node)]

    @property
    def next_track(self) -> int:
        """The number of the next pool's first track."""
        return self.tracks_from + sum(pool.tracks for pool in self.kernel.pools)

    def found(self, name: str) -> int | None:
        """How far a table is loaded; None if it is empty."""
        return 0 if self.freshness is None else self.freshness.get(name)

    def elsewhere(self, name: str) -> RemoteTable:
        """The table as this kernel knows it, though another kernel updates it."""
        return elsewhere(self.kernel, name, self.found(name) or 0)


def elsewhere(kernel: Kernel, name: str, freshness: int = 0) -> RemoteTable:
    """A table that another kernel updates; `freshness` counts if the table was unknown here."""
    found = kernel.elsewhere.setdefault(name, RemoteTable(name, freshness))
    assert isinstance(found, RemoteTable)
    return found
