"""The continuous queries of a warehouse in simulated time: their windows and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from freshline.definitions.language.policies import POLICIES
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.query_tracks import track_name
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.rescheduling import Rescheduling
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.plan.plan import Plan, QueryPlan
from freshline.simulation.conditions.gaps import Gaps
from freshline.simulation.conditions.spans import Spans
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.iterations import (
    IterationOutcome,
    QueryWindows,
    SimulatedIterations,
    WindowsOfStreams,
)
from freshline.simulation.kind import SimulationSetup
from freshline.simulation.streams import ChangingRate, ConstantRate, TupleStream


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one query, over the iterations that were due by the end of the run."""

    plan: QueryPlan
    iterations: int
    misses: int  # unfinished at the deadline
    completed: int  # finished, in time or late
    keep_mean: float | None  # the planned share of its window that an iteration reads; None: no iteration
    error_share: float | None  # the weighted share of all tuples that were not read by the deadline
    response_max_us: int | None  # of finished iterations
    is_proven: bool  # whether it was proven that no deadline is missed

    @property
    def broke_proof(self) -> bool:
        return self.is_proven and self.misses > 0

    @property
    def holds(self) -> bool:
        return not self.misses and not self.plan.refusal


class SimulatedAnswers(SimulatedIterations):
    """The queries of a plan: their windows, and how often they were in time."""

    def __init__(self, plan: Plan, gaps: Gaps, slow: Mapping[str, Fraction]) -> None:
        self._end = NEVER  # iterations with a later deadline are left out
        self._plan = plan
        self._tallies = {query.name: _Tally() for query in plan.queries}
        streams = table_streams(plan.warehouse, gaps)
        windows = {query.name: _windows(plan.warehouse, query, streams) for query in plan.queries}
        for name in windows.keys() & slow.keys():
            windows[name] = SlowedWindows(windows[name], slow[name])
        super().__init__(windows, self._seen, _reschedulings(plan.warehouse))

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self | None:
        conditions = setup.conditions
        return cls(setup.plan, conditions.gaps, conditions.slow) if setup.plan.queries else None

    @classmethod
    def can_be_slow(cls, warehouse: Warehouse) -> Iterable[str]:
        return warehouse.queries

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        super().attach(driver)
        self._end = end

    def results(self, kernel: Kernel, end: int) -> tuple[QueryResult, ...]:
        pools = self._plan.warehouse.pools
        return tuple(
            self._tallies[query.name].result(query, POLICIES[pools[query.pool].policy].proven)
            for query in self._plan.queries
        )

    def _seen(self, outcome: IterationOutcome) -> None:
        if outcome.deadline <= self._end:
            self._tallies[outcome.query].add(outcome)


class _Tally:
    """Sums over the iterations of a query."""

    def __init__(self) -> None:
        self._iterations = self._misses = self._completed = 0
        self._keep = self._error = self._worth = Fraction(0)
        self._response_max_us: int | None = None

    def add(self, outcome: IterationOutcome) -> None:
        self._iterations += 1
        self._misses += not outcome.met
        self._keep += outcome.keep
        self._error += outcome.error
        self._worth += outcome.worth * outcome.tuples
        if outcome.finished is not None:
            self._completed += 1
            self._response_max_us = max(self._response_max_us or 0, outcome.finished - outcome.released)

    def result(self, plan: QueryPlan, is_proven: bool) -> QueryResult:
        return QueryResult(
            plan,
            self._iterations,
            self._misses,
            self._completed,
            float(self._keep / self._iterations) if self._iterations else None,
            float(self._error / self._worth) if self._worth else None,
            self._response_max_us,
            is_proven,
        )


class SlowedWindows:
    """The windows of a query whose answers cost `factor` times as much; rounded down, at least 1 µs."""

    __slots__ = ("_factor", "_windows")

    def __init__(self, windows: QueryWindows, factor: Fraction) -> None:
        self._windows = windows
        self._factor = factor

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        measure, factor = self._windows.measure(from_us, to_us), self._factor
        return measure._replace(
            cost_us=int(measure.cost_us * factor) or 1, fixed_us=int(measure.fixed_us * factor)
        )


class _WindowsAsDeclared:
    """Windows of streams, with the declared cost or selectivity of a query, whatever they hold."""

    def __init__(self, windows: QueryWindows, query: Query, load: QueryLoad) -> None:
        self._windows = windows
        self._query = query
        self._load = load

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        measure, load = self._windows.measure(from_us, to_us), self._load
        if self._query.cost is not None:
            measure = measure._replace(cost_us=load.cost_us, fixed_us=load.fixed_us)
        if self._query.selectivity is not None:
            measure = measure._replace(selectivity=load.selectivity)
        return measure


class _Together:
    """The sum of several streams."""

    def __init__(self, streams: Sequence[TupleStream]) -> None:
        self._streams = streams

    def tuples(self, from_us: int, to_us: int) -> int:
        return sum(stream.tuples(from_us, to_us) for stream in self._streams)


def table_streams(warehouse: Warehouse, gaps: Gaps) -> dict[str, TupleStream]:
    """By table: the rows that reach it, from its feed or from all its sources.

    A feed that does not declare its rows counts as a row a second.
    """
    streams: dict[str, TupleStream] = {}
    stored = warehouse.stored
    for name in warehouse.stored_order:
        table = stored[name]
        if table.feed is None:
            streams[name] = _Together([streams[source] for source in table.sources])
        else:
            rate = warehouse.feeds[table.feed].rows_loaded or Fraction(1)
            streams[name] = _stream(rate, gaps.get(table.feed, ()))
    return streams


def _stream(rate: Fraction, gaps: Spans) -> TupleStream:
    if not gaps:
        return ConstantRate(rate)
    edges = [edge for start, end in gaps for edge in ((start, Fraction(0)), (end, rate))]
    return ChangingRate(edges if edges[0][0] == 0 else [(0, rate), *edges])


def _windows(warehouse: Warehouse, plan: QueryPlan, streams: Mapping[str, TupleStream]) -> QueryWindows:
    query = warehouse.queries[plan.name]
    assert query.operators is not None, f"nothing says what {query.name} is made of"
    own = {name: streams[name] for name in query.tables}
    windows = WindowsOfStreams(query.operators, own)
    is_declared = query.cost is not None or query.selectivity is not None
    return _WindowsAsDeclared(windows, query, plan.load) if is_declared else windows


def _reschedulings(warehouse: Warehouse) -> dict[str, Rescheduling]:
    """By track of the pools that shed."""
    return {
        track_name(pool.name, number + 1): Rescheduling(pool.rescheduling, pool.threshold)
        for pool in warehouse.pools.values()
        if "rescheduling" in POLICIES[pool.policy].options
        for number in range(pool.tracks)
    }
