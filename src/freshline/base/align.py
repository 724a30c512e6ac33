"""Windows of aligned tables: [k·align, (k+1)·align)."""

from __future__ import annotations


def last_edge(instant_us: int, align_us: int | None) -> int:
    """The last instant up to there that ends a window; without windows the instant itself.

    >>> last_edge(25, 10), last_edge(29, 10), last_edge(3, 10), last_edge(25, None)
    (19, 29, 0, 25)
    """
    return instant_us if align_us is None else max(0, (instant_us + 1) // align_us * align_us - 1)
