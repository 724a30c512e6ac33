"""How far a table was behind what it could have loaded, over a whole run."""

from __future__ import annotations

from collections.abc import Container, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter

from freshline.assembly.assemble import assemble
from freshline.simulation.observation import History
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.simulated_run import files_of
from freshline.tables.task import tables_of

# The instant, the table that ended a job (or a feed's file: -1), and the timestamp that it reached.
_Change = tuple[int, int, int]
_FILE = -1


def lag_points(result: SimulationResult, index: int) -> Iterator[tuple[int, int]]:
    """A table's (instant, lag TE − F) just before and just after each instant at which it may jump.

    The run must have kept its history. What came when is worked out again: the seed says it.
    """
    assert result.history is not None, "nothing was kept to tell"
    tasks = tables_of(assemble(result.plan))
    task = tasks[index]
    intake = task.intake
    warehouse = result.plan.warehouse
    table = warehouse.tables[task.name]
    watched = {index} | {source.place for source in tasks if source.name in table.sources}
    changes = merge(
        _completions(result.history, watched),
        () if table.feed is None else _files(result, table.feed),
        key=itemgetter(0),
    )
    yield 0, 0
    for at, together in groupby(changes, key=itemgetter(0)):
        yield at, intake.trailing_edge(at) - task.freshness
        for _, where, reached in together:
            if where != _FILE:
                tasks[where].freshness = reached
            else:
                intake.seen(reached)
        yield at, intake.trailing_edge(at) - task.freshness
    yield result.end, intake.trailing_edge(result.end) - task.freshness


def _completions(history: History, watched: Container[int]) -> Iterator[_Change]:
    for index, at, freshness in zip(history.tables, history.ends, history.freshness, strict=True):
        if index in watched:
            yield at, index, freshness


def _files(result: SimulationResult, feed: str) -> Iterator[_Change]:
    if result.plan.warehouse.feeds[feed].arrival != "files":
        return
    files = files_of(result.plan.warehouse.feeds[feed], result.seed, result.outages.get(feed, ()))
    while (coming := files.next()) is not None and coming[0] <= result.end:
        yield coming[0], _FILE, coming[1].timestamp
