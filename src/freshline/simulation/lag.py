"""The lag of a table over a whole run."""

from __future__ import annotations

from collections.abc import Container, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter

from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.tables.task import tables_of
from freshline.simulation.job_records import JobRecords
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.simulated_run import files_of

# The instant, the table of an ended job (None: a file arrived), and the timestamp that it reached.
_Change = tuple[int, str | None, int]


def lag_points(result: SimulationResult, name: str) -> Iterator[tuple[int, int]]:
    """A table's (instant, lag TE − F) just before and just after each instant at which it may jump.

    The run must have kept its records. Arrivals are computed again from the seed.
    """
    assert result.records is not None, "nothing was kept to tell"
    tasks = {task.name: task for task in tables_of(assemble(result.plan))}
    task, table = tasks[name], result.plan.warehouse.tables[name]
    intake = task.intake
    changes = merge(
        _completions(result.records, {name, *table.sources}),
        () if table.feed is None else _files(result, table.feed),
        key=itemgetter(0),
    )
    yield 0, 0
    for at, together in groupby(changes, key=itemgetter(0)):
        yield at, intake.trailing_edge(at) - task.freshness
        for _, where, reached in together:
            if where is not None:
                tasks[where].freshness = reached
            else:
                intake.seen(reached)
        yield at, intake.trailing_edge(at) - task.freshness
    yield result.end, intake.trailing_edge(result.end) - task.freshness


def _completions(records: JobRecords, watched: Container[str]) -> Iterator[_Change]:
    return (change for change in records.completions() if change[1] in watched)


def _files(result: SimulationResult, feed: str) -> Iterator[_Change]:
    if result.plan.warehouse.feeds[feed].arrival != "files":
        return
    files = files_of(result.plan.warehouse.feeds[feed], result.seed, result.outages.get(feed, ()))
    while (coming := files.next()) is not None and coming[0] <= result.end:
        yield coming[0], None, coming[1].timestamp
