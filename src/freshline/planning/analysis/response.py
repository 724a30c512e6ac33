"""The proven tardiness of tasks in a non-preemptive EDF pool, by the smallest known bound."""

from __future__ import annotations

from collections.abc import Sequence
from operator import gt

from freshline.planning.analysis.np_edf import blocking_tardiness, schedulable
from freshline.planning.analysis.np_gedf_per_task import NpGedfPerTask


def tardiness_bounds(
    costs: Sequence[int], periods: Sequence[int], tracks: int, blocking: int = 0, part: int = 0
) -> list[int] | None:
    """The tardiness Y_i of every task in whole units, rounded up (paper 004, Definition 8).

    All are 0 with at most as many tasks as tracks and no parts, or if Jeffay's test holds on one track.
    Otherwise it is the blocking on one track, and the per-task bound on more, which is never above Theorem
    2's e_i + x. `None` if U > m or some e is above its period: then there is no bound. Batches may block for
    `blocking` (docs/batches.md), and on each track a part of a request, which belongs to no task, for `part`.

    >>> tardiness_bounds([10, 98], [100, 100], 2, part=5)
    [0, 3]
    """
    if any(map(gt, costs, periods)):
        return None
    if len(costs) <= tracks:
        return [max(0, cost + part - period) for cost, period in zip(costs, periods, strict=True)]
    if tracks == 1:
        blocking = max(blocking, part)
        # Blocking is never above the bounds for several tracks, which on one are max e and e_i + x.
        if schedulable(costs, periods, blocking=blocking):
            return [0] * len(costs)
        return blocking_tardiness(costs, periods, blocking)
    if not part:
        return NpGedfPerTask(costs, periods, blocking).tardiness(tracks)
    # Parts are jobs of m more tasks that block and never carry (docs/batches.md, "Parts of requests").
    bounds = NpGedfPerTask([*costs, *[0] * tracks], [*periods, *[1] * tracks], max(blocking, part))
    tardiness = bounds.tardiness(tracks)
    return None if tardiness is None else tardiness[: len(costs)]
