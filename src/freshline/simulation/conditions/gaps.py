"""Gaps: feeds deliver on time, but for a while without rows, which derived tables may jump over.

A file in a gap has a timestamp as usual, from its name, or from records that the tables' `select` leaves out.
Base tables load it and become that fresh.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import itemgetter

from freshline.definitions.warehouse import Warehouse
from freshline.simulation.conditions.spans import Span, Spans, checked_spans, common

# From when to when no row has its timestamp.
Gap = Span
Gaps = Mapping[str, Spans]  # by feed


def checked_gaps(warehouse: Warehouse, gaps: Mapping[str, Sequence[Gap]]) -> Gaps:
    """The gaps in order; those of a feed that overlap or touch are merged."""
    return checked_spans(warehouse, "a gap", gaps)


def gaps_of_sources(warehouse: Warehouse, gaps: Gaps) -> dict[str, Spans]:
    """By table: when none of its sources has a row; empty for a table that loads a feed.

    A derived table has rows exactly where one of its sources has. A table with windows has a row at the
    beginning of each window with any rows, so only whole windows count.
    """
    of_rows: dict[str, Spans] = {}
    of_sources: dict[str, Spans] = {}
    stored = warehouse.stored
    for name in warehouse.stored_order:
        table = stored[name]
        if table.feed is not None:
            of_rows[name], of_sources[name] = gaps.get(table.feed, ()), ()
            continue
        quiet = reduce(common, (of_rows[source] for source in table.sources))
        of_sources[name] = quiet
        of_rows[name] = quiet if table.align_us is None else _whole_windows(quiet, table.align_us)
    return of_sources


def next_row(gaps: Spans, after: int) -> int:
    """The first instant after that one with a row: outside gaps every instant has one."""
    begun = bisect_right(gaps, after + 1, key=itemgetter(0))
    return max(after + 1, gaps[begun - 1][1]) if begun else after + 1


def _whole_windows(gaps: Spans, align_us: int) -> Spans:
    whole = ((-(-start // align_us) * align_us, end // align_us * align_us) for start, end in gaps)
    return tuple((start, end) for start, end in whole if start < end)
