"""A warehouse on several nodes as one: what each node tells of itself, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from freshline.live.status import WarehouseStatus


def together(
    statuses: Sequence[WarehouseStatus], tables: Sequence[str], upstream: Mapping[str, Sequence[str]]
) -> WarehouseStatus:
    """The status of a warehouse by those of its nodes, of which there is at least one.

    `tables` are the names of all tables and steps, in the order of definition; `upstream` are, by output, the
    steps that load what it is computed from. A record that is late there reaches no output: it has missed
    each.
    """
    first = statuses[0]
    place = {name: number for number, name in enumerate(tables)}
    steps = sorted((step for status in statuses for step in status.steps), key=lambda step: place[step.name])
    late = {step.name: step.rows_late for step in steps}
    outputs = [
        replace(output, misses=output.misses + sum(late.get(name, 0) for name in upstream[output.name]))
        for status in statuses
        for output in status.outputs
    ]
    tracks = [track for status in statuses for track in status.tracks]
    return replace(
        first,
        node=None,
        at_us=max(status.at_us for status in statuses),
        started_us=min(status.started_us for status in statuses),
        tables=tuple(
            sorted(
                (table for status in statuses for table in status.tables), key=lambda each: place[each.name]
            )
        ),
        tracks=tuple(replace(track, number=number) for number, track in enumerate(tracks)),
        broken_assumptions=tuple(
            f"{status.node}: {line}" for status in statuses for line in status.broken_assumptions
        ),
        quarantined=max(status.quarantined for status in statuses),
        recoveries=tuple(line for status in statuses for line in status.recoveries),
        pools=tuple(pool for status in statuses for pool in status.pools),
        queries=tuple(query for status in statuses for query in status.queries),
        classes=tuple(each for status in statuses for each in status.classes),
        starting=next((status.starting for status in statuses if status.starting is not None), None),
        steps=tuple(steps),
        outputs=tuple(sorted(outputs, key=lambda output: place[output.name])),
    )
