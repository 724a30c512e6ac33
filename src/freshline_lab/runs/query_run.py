"""Queries over streams of tuples, in simulated time, without a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.queries import Query
from freshline.kernel.assembly.query_tracks import add_query_tracks, track_name
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.query_spec import QuerySpec
from freshline.kernel.queries.rescheduling import Rescheduling
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.iterations import (
    IterationOutcome,
    QueryWindows,
    SimulatedIterations,
    WindowsOfStreams,
)
from freshline.simulation.streams import TupleStream


@dataclass(frozen=True, slots=True)
class QueryRunAnswers:
    """The outcomes of all iterations that ended or were due, and the number of reschedules."""

    outcomes: list[IterationOutcome]
    reschedules: int


def simulate_queries(
    queries: Sequence[Query],
    streams: Mapping[str, TupleStream],
    pool: Pool,
    end: int,
    journal: Journal | None = None,
) -> QueryRunAnswers:
    """Answers queries from instant 0 on, on a pool of one track; all queries are admitted.

    Their tables are the streams, and costs are by their operators. A query without `part` can be paused at
    any instant.
    """
    windows = {query.name: windows_of(query, streams) for query in queries}
    asked = [asked_of(query, windows[query.name]) for query in queries]
    outcomes: list[IterationOutcome] = []
    run = QueryRun(pool, asked, windows, outcomes.append, journal)
    run.driver.run(end)
    return QueryRunAnswers(outcomes, run.rescheduling.times)


class QueryRun:
    """A kernel of one track of queries, and the simulated driver that runs it."""

    def __init__(
        self,
        pool: Pool,
        asked: Sequence[QuerySpec],
        windows: Mapping[str, QueryWindows],
        watch: Callable[[IterationOutcome], None],
        journal: Journal | None = None,
        kind: Callable[..., SimulatedIterations] = SimulatedIterations,
    ) -> None:
        self.rescheduling = Rescheduling(pool.rescheduling, pool.threshold)
        kernel = query_kernel(pool, asked)
        sheds = kernel.pools[0].controller is not None
        reschedulings = {kernel.pools[0].name: self.rescheduling} if sheds else {}
        iterations = kind(windows, watch, reschedulings)
        self.driver = SimulatedDriver(kernel, {Iteration: iterations}, {}, journal)
        iterations.attach(self.driver)


def query_kernel(pool: Pool, asked: Sequence[QuerySpec]) -> Kernel:
    """A kernel with queries only, at instant 0."""
    assert pool.tracks == 1, "these queries share one track"
    kernel = Kernel()
    add_query_tracks(kernel, pool, asked, 0)
    kernel.begin(0)
    return kernel


def windows_of(query: Query, streams: Mapping[str, TupleStream]) -> WindowsOfStreams:
    """The windows of a query over the streams with the names of its tables."""
    assert query.operators is not None, f"nothing says what {query.name} costs"
    return WindowsOfStreams(query.operators, {name: streams[name] for name in query.tables})


def asked_of(query: Query, windows: QueryWindows) -> QuerySpec:
    """A query as the kernel needs it, at instant 0."""
    return QuerySpec(
        query.name,
        track_name(query.pool, 1),
        query.window_us,
        query.stride_us,
        query.deadline_us,
        query.part_us or 0,
        windows.measure(-query.window_us, 0),
        query.weight,
        query.keep_least,
    )
