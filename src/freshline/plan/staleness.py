"""Staleness bounds A(V) over the DAG of tables (paper 004, Definition 5; paper 001, Definition 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from freshline.costs.bounds import longest_update_us
from freshline.definitions.tables import Table
from freshline.definitions.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class StalenessModel:
    """A(V) = Θ + own term + max A(source), ready to be worked out for any response bounds Θ.

    Lists are by table index (order of definition); `order` visits every table after its sources.
    """

    order: tuple[int, ...]
    own_us: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    readers: tuple[tuple[int, ...], ...]
    position: tuple[int, ...]  # in `order`

    def bounds(self, response_us: Sequence[int | None]) -> list[int | None]:
        """A(V) for every table; None downstream of a table without a response bound."""
        bounds: list[int | None] = [None] * len(self.own_us)
        for index in self.order:
            response = response_us[index]
            if response is None:
                continue
            upstream = 0
            for source in self.sources[index]:
                bound = bounds[source]
                if bound is None:
                    break
                if bound > upstream:
                    upstream = bound
            else:
                bounds[index] = response + self.own_us[index] + upstream
        return bounds


def staleness_model(warehouse: Warehouse) -> StalenessModel:
    """The part of A(V) that does not depend on how the tables are scheduled."""
    index_of = {name: index for index, name in enumerate(warehouse.tables)}
    order = tuple(index_of[name] for name in warehouse.topological_order)
    position = [0] * len(order)
    readers: list[list[int]] = [[] for _ in order]
    sources: list[tuple[int, ...]] = []
    for at, index in enumerate(order):
        position[index] = at
    for index, table in enumerate(warehouse.tables.values()):
        sources.append(tuple(index_of[source] for source in table.sources))
        for source in sources[index]:
            readers[source].append(index)
    return StalenessModel(
        order=order,
        own_us=tuple(_own_us(warehouse, table) for table in warehouse.tables.values()),
        sources=tuple(sources),
        readers=tuple(map(tuple, readers)),
        position=tuple(position),
    )


def _own_us(warehouse: Warehouse, table: Table) -> int:
    # What can be loaded of its sources ends at a window's edge: it is older by less than a window.
    align_us = table.align_us or 0
    if table.name not in warehouse.released_by_files:
        return max(table.period_us, table.phase_us) + align_us
    if table.feed is None:
        return table.period_us + align_us
    feed = warehouse.feeds[table.feed]
    # Lateness makes no update longer, but what it loads is older by that much, as with timestamp jitter.
    oldest_us = feed.timestamp_jitter_us + feed.landing.lateness_us
    return table.period_us + longest_update_us(table, replace(feed, timestamp_jitter_us=oldest_us))
