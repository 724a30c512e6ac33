"""Which continuous queries are admitted, and on which track.

A query is admitted if it and all admitted queries meet their deadlines at their least costs: then shedding
can always make them fit. An admitted query is never removed for others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from freshline.base.duration import HOUR, MILLISECOND, format_duration
from freshline.planning.analysis.exact import scaled_quotients
from freshline.planning.analysis.levels import QueryLoad, first_late, holds, last_late
from freshline.planning.analysis.utilization import fits

_STRIDE_MOST_US: Final = HOUR


class QueryRefusal(NamedTuple):
    """A query that is not admitted."""

    name: str
    reason: str
    period_least_us: int | None  # the smallest stride, with the deadline at it, that would fit


def admit(loads: Sequence[QueryLoad], running: Collection[str] = ()) -> list[QueryRefusal]:
    """The refused queries of one track: in the order of definition, but running ones first."""
    waiting = sorted(loads, key=lambda load: load.name not in running)
    admitted: list[QueryLoad] = []
    refused = []
    while waiting:
        count = _most_that_fit(admitted, waiting)
        admitted += waiting[:count]
        refused += [refusal(load, [admitted]) for load in waiting[count : count + 1]]
        waiting = waiting[count + 1 :]
    return refused


def placed(loads: Sequence[QueryLoad], tracks: int) -> list[int]:
    """The track of each query: by falling utilisation, to the least loaded track; ties to the lower one."""
    shares = scaled_quotients([load.cost_us for load in loads], [load.period_us for load in loads])
    track_of = [0] * len(loads)
    taken = [0] * tracks
    for place in sorted(range(len(loads)), key=shares.__getitem__, reverse=True):
        track_of[place] = taken.index(min(taken))
        taken[track_of[place]] += shares[place]
    return track_of


def track_for(load: QueryLoad, tracks: Sequence[Sequence[QueryLoad]]) -> int | None:
    """The least loaded track on which a new query fits beside the running ones; None if there is none."""
    taken = [
        sum(scaled_quotients([each.cost_us for each in track], [each.period_us for each in track]))
        for track in tracks
    ]
    by_load = sorted(range(len(tracks)), key=taken.__getitem__)
    return next((track for track in by_load if _fit([*tracks[track], load])), None)


def refusal(load: QueryLoad, tracks: Sequence[Sequence[QueryLoad]]) -> QueryRefusal:
    """Why a query fits on none of the tracks, and at which stride it would fit on one."""
    late = [_late(load, track) for track in tracks]
    whose = "its own deadline" if load.name in late else f"the deadline of {late[0]!r}"
    least = format_duration(load.least_us, up=True)
    reason = f"even at the least costs, {least} of its own, {whose} would be missed"
    strides = [_period_least_us(load, track) for track in tracks]
    return QueryRefusal(load.name, reason, min((stride for stride in strides if stride), default=None))


def _late(load: QueryLoad, track: Sequence[QueryLoad]) -> str:
    together = [*track, load]
    place = first_late(together, [each.least_us for each in together])
    assert place is not None, "a query that fits is not refused"
    return together[place].name


def _fit(loads: Sequence[QueryLoad]) -> bool:
    """Whether all meet their deadlines at their least costs."""
    least = [load.least_us for load in loads]
    return fits(least, [load.period_us for load in loads], 1) and first_late(loads, least) is None


def _most_that_fit(admitted: Sequence[QueryLoad], waiting: Sequence[QueryLoad]) -> int:
    """How many of the waiting queries can be admitted, one after another, until one does not fit.

    A query that fits still fits without the others, so a binary search works. Usually all fit, or none if the
    track is full.
    """
    if _fit([*admitted, *waiting]):
        return len(waiting)
    reach = 1
    while reach < len(waiting) and _fit([*admitted, *waiting[:reach]]):
        reach *= 2
    counts = range(reach // 2, min(reach, len(waiting)))
    return counts.start + bisect_left(
        counts, True, key=lambda count: not _fit([*admitted, *waiting[: count + 1]])
    )


def _period_least_us(load: QueryLoad, track: Sequence[QueryLoad]) -> int | None:
    """The smallest stride in whole milliseconds at which a query fits.

    A longer stride needs less, and its lower priority suits it: shorter deadlines first is the best fixed
    order. So whatever fits at some stride fits at a longer one. The search looks at one late query, which is
    quick, and then tests all.
    """
    least = [each.least_us for each in (*track, load)]
    strides = range(1, _STRIDE_MOST_US // MILLISECOND + 1)
    late: int | None = len(track)
    while late is not None and strides:

        def holds_at(stride_ms: int, place: int = late) -> bool:
            return holds(_with_stride(load, track, stride_ms), place, least)

        strides = strides[bisect_left(strides, True, key=holds_at) :]
        late = last_late(_with_stride(load, track, strides[0]), least) if strides else None
    return strides[0] * MILLISECOND if strides else None


def _with_stride(load: QueryLoad, track: Sequence[QueryLoad], stride_ms: int) -> list[QueryLoad]:
    stride_us = stride_ms * MILLISECOND
    return [*track, load._replace(period_us=stride_us, deadline_us=stride_us)]
