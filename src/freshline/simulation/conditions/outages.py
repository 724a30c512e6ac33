"""Feeds that are down for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshline.base.errors import InputError
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.tables.events import DataFile
from freshline.simulation.conditions.spans import Span, Spans, checked_spans
from freshline.simulation.driver import FeedFiles

# From when to when; the feed delivers again at the end.
Outage = Span
Outages = Mapping[str, Spans]  # by feed


def checked_outages(warehouse: Warehouse, outages: Mapping[str, Sequence[Outage]]) -> Outages:
    """The outages in order; those of a feed that overlap or touch are merged."""
    checked = checked_spans(warehouse, "an outage", outages)
    for name in outages:
        if warehouse.feeds[name].arrival != "files":
            raise InputError(
                f"an outage names the feed `{name}`, which is continuous", "Name a feed of arrival `files`"
            )
    return checked


def downstream(warehouse: Warehouse, feeds: Iterable[str], tables: Iterable[str] = ()) -> frozenset[str]:
    """The tables that load one of these feeds, these tables, and all downstream of them."""
    loaded = frozenset(feeds)
    reached = set(tables)
    stored = warehouse.stored
    for name in warehouse.stored_order:
        table = stored[name]
        if table.feed in loaded or not reached.isdisjoint(table.sources):
            reached.add(name)
    return frozenset(reached)


class InterruptedFeed:
    """The files of a feed with outages.

    Files of an outage arrive at its end, otherwise unchanged. So the files are the same with and without
    outages, and two runs can be compared.
    """

    __slots__ = ("_files", "_next", "_outages")

    def __init__(self, files: FeedFiles, outages: Sequence[Outage]) -> None:
        self._files = files
        self._outages = outages
        self._next = 0

    def next(self) -> tuple[int, DataFile] | None:
        coming = self._files.next()
        if coming is None:
            return None
        arrival, file = coming
        while self._next < len(self._outages) and self._outages[self._next][1] <= arrival:
            self._next += 1
        if self._next < len(self._outages) and self._outages[self._next][0] <= arrival:
            arrival = self._outages[self._next][1]
        return arrival, file
