"""Spans of time, each with its start and without its end; several are in order and apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse

Span = tuple[int, int]
Spans = tuple[Span, ...]


def merged(spans: Iterable[Span]) -> Spans:
    """Spans in order; those that overlap or touch are merged."""
    kept: list[Span] = []
    for start, end in sorted(spans):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return tuple(kept)


def checked_spans(warehouse: Warehouse, what: str, spans: Mapping[str, Sequence[Span]]) -> dict[str, Spans]:
    """Spans by feed of the warehouse, in order; those of a feed that overlap or touch are merged."""
    for name, times in spans.items():
        if name not in warehouse.feeds:
            raise InputError(
                f"{what} names the feed `{name}`, which does not exist",
                Names("feeds", warehouse.feeds).remedy(name),
            )
        if any(not 0 <= start < end for start, end in times):
            raise InputError(
                f"{what} of the feed `{name}` does not end after it begins",
                "Give its beginning, 0 or later, and then its end",
            )
    return {name: merged(spans[name]) for name in warehouse.feeds if spans.get(name)}


def common(some: Spans, others: Spans) -> Spans:
    """The intersection of both."""
    both = ((max(one[0], other[0]), min(one[1], other[1])) for one in some for other in others)
    return merged((start, end) for start, end in both if start < end)
