"""Staleness bounds A(V) over the DAG of tables (paper 004, Definition 5; paper 001, Definition 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.bounds import longest_update_us


@dataclass(frozen=True, slots=True)
class StalenessModel:
    """A(V) = Θ + own term + max A(source), for any response bounds Θ.

    Everything is by table; `order` has each table after its sources.
    """

    order: tuple[str, ...]
    own_us: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]]
    readers: Mapping[str, list[str]]
    position: Mapping[str, int]  # in `order`
    steps_us: Mapping[str, int]  # how stale the steps can become that tables read, if known

    def bounds(self, response_us: Mapping[str, int | None]) -> dict[str, int | None]:
        """A(V) for every table; None downstream of a table without a response bound."""
        bounds: dict[str, int | None] = {**dict.fromkeys(self.own_us), **self.steps_us}
        for name in self.order:
            response = response_us[name]
            if response is None:
                continue
            upstream = 0
            for source in self.sources[name]:
                bound = bounds.get(source)
                if bound is None:
                    break
                if bound > upstream:
                    upstream = bound
            else:
                bounds[name] = response + self.own_us[name] + upstream
        return bounds


def staleness_model(warehouse: Warehouse, steps_us: Mapping[str, int] | None = None) -> StalenessModel:
    """The part of A(V) that does not depend on scheduling."""
    tables = warehouse.tables
    readers: dict[str, list[str]] = {name: [] for name in tables}
    for name, table in tables.items():
        for source in table.sources:
            if source in readers:  # it is not a step
                readers[source].append(name)
    return StalenessModel(
        order=warehouse.topological_order,
        own_us={name: _own_us(warehouse, table) for name, table in tables.items()},
        sources={name: table.sources for name, table in tables.items()},
        readers=readers,
        position={name: at for at, name in enumerate(warehouse.topological_order)},
        steps_us=steps_us or {},
    )


def _own_us(warehouse: Warehouse, table: Table) -> int:
    # What can be loaded from its sources ends at a window's edge: it is older by less than a window.
    align_us = table.align_us or 0
    if table.name not in warehouse.released_by_files:
        return max(table.period_us, table.phase_us) + align_us
    if table.feed is None:
        return table.period_us + align_us
    feed = warehouse.feeds[table.feed]
    # Lateness makes no update longer, but its data older by that much, like timestamp jitter.
    oldest_us = feed.timestamp_jitter_us + feed.landing.lateness_us
    return table.period_us + longest_update_us(table, replace(feed, timestamp_jitter_us=oldest_us))
