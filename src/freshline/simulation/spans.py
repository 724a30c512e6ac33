"""Spans of time, from one instant on and before another; several in order, with time between them."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]
Spans = tuple[Span, ...]


def merged(spans: Iterable[Span]) -> Spans:
    """Spans in order, those that overlap or touch made one."""
    kept: list[Span] = []
    for start, end in sorted(spans):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return tuple(kept)


def common(some: Spans, others: Spans) -> Spans:
    """What lies in both."""
    both = ((max(one[0], other[0]), min(one[1], other[1])) for one in some for other in others)
    return merged((start, end) for start, end in both if start < end)
