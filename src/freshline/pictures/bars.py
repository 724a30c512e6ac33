"""Jobs as bars on their tracks, limited to what a picture can show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Final, NamedTuple

# More bars could not be distinguished.
TRACKS_MAX: Final = 60
_BARS_MAX = 300


class Bar(NamedTuple):
    """A job on its track."""

    task: str
    track: int
    start: int
    end: int


def first_bars(bars: Callable[[], Iterable[Bar]], end: int) -> tuple[list[Bar], int]:
    """All jobs that started before an instant, on the tracks that are shown, and that instant.

    The instant is the end of the run, or early enough to distinguish the bars.
    """
    shown = (bar for bar in bars() if bar.track < TRACKS_MAX)
    starts = nsmallest(_BARS_MAX + 1, (bar.start for bar in shown))
    until = starts[-1] if len(starts) > _BARS_MAX else end + 1
    first = [bar for bar in bars() if bar.track < TRACKS_MAX and bar.start < until]
    return first, min(until, end)
