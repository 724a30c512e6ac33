"""Finds continuous queries with a table that falls so far behind another that answers are about the past.

A query's windows end where its least fresh table ends. So a table that is loaded once an hour holds a query
back by up to an hour, however fresh the others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from freshline.base.duration import format_duration
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class SlowTable:
    """A table of a query, and how far it may be behind the query's freshest table."""

    name: str
    stale_us: int  # how stale it can become
    fresh: str  # the freshest table
    fresh_us: int  # how stale that can become
    window_us: int  # of the query

    @property
    def behind_us(self) -> int:
        return self.stale_us - self.fresh_us

    def sentence(self, query: str) -> str:
        """The consequence for that query, without a full stop."""
        stale, fresh = format_duration(self.stale_us, up=True), format_duration(self.fresh_us, up=True)
        return (
            f"query {query} answers about the time that {self.name} has reached, up to {stale} ago: "
            f"{self.fresh} is at most {fresh} old, and the window is {format_duration(self.window_us)}"
        )


def slow_tables(warehouse: Warehouse, bounds_us: Mapping[str, int | None]) -> dict[str, SlowTable]:
    """By query, the table that holds it back; `bounds_us` has the staleness bounds of tables and steps.

    Without a bound for each of the query's tables their periods are compared: how stale each is just before
    its next update, if that takes no time.
    """
    by_periods_us = _by_periods_us(warehouse)
    found = {}
    for query in warehouse.queries.values():
        if len(query.tables) < 2:
            continue
        known = {name: bounds_us.get(name) for name in query.tables}
        bounded = {name: bound_us for name, bound_us in known.items() if bound_us is not None}
        stale_us = bounded if len(bounded) == len(known) else by_periods_us
        slow = _slowest(query, stale_us)
        if slow is not None:
            found[query.name] = slow
    return found


def _slowest(query: Query, stale_us: Mapping[str, int]) -> SlowTable | None:
    slow = max(query.tables, key=lambda name: stale_us[name])
    fresh = min(query.tables, key=lambda name: stale_us[name])
    found = SlowTable(slow, stale_us[slow], fresh, stale_us[fresh], query.window_us)
    return found if found.behind_us > query.window_us else None


def _by_periods_us(warehouse: Warehouse) -> dict[str, int]:
    """By table and step: the periods of its feed, or of its slowest source, and its own."""
    found: dict[str, int] = {}
    for name in warehouse.stored_order:
        table = warehouse.tables.get(name)
        own_us = 0 if table is None else table.period_us
        stored = warehouse.stored[name]
        if stored.feed is None:
            found[name] = own_us + max((found[source] for source in stored.sources), default=0)
        else:
            feed = warehouse.feeds[stored.feed]
            period_us = (feed.period_us or 0) + feed.jitter_us + feed.timestamp_jitter_us
            found[name] = max(own_us, period_us) + feed.landing.lateness_us
    return found
