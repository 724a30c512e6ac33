"""Simulated iterations of continuous queries: their costs, their ends, and what they leave out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple, Protocol

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.queries.events import IterationFinished, LoadMeasured
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.rescheduling import Rescheduling
from freshline.kernel.queries.task import QueryTask, queries_of
from freshline.planning.analysis.operators import operator_cost
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.kind import SimulatedKind
from freshline.simulation.streams import TupleStream
from freshline.sql.operators import Operator


class QueryWindows(Protocol):
    """The windows that one query reads."""

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        """The content of (from, to], and the cost of an answer over all of it."""


class WindowsOfStreams:
    """Windows of streams, with costs by the operators of the query."""

    def __init__(self, operators: Operator, streams: Mapping[str, TupleStream]) -> None:
        self._operators = operators
        self._streams = streams

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        tuples = {name: stream.tuples(from_us, to_us) for name, stream in self._streams.items()}
        cost = operator_cost(self._operators, tuples)
        return QueryMeasure(cost.tuples, cost.cost_us, cost.fixed_us, cost.selectivity)


class IterationOutcome(NamedTuple):
    """The result of an iteration."""

    query: str
    released: int
    deadline: int
    finished: int | None  # None: not before the end of the run
    keep: Fraction  # the planned share of its window
    tuples: Fraction | int  # in its window
    unprocessed: Fraction  # of them, not read at its deadline
    worth: Fraction  # g·s: the weight of each tuple

    @property
    def met(self) -> bool:
        return self.finished is not None and self.finished <= self.deadline

    @property
    def error(self) -> Fraction:
        return self.worth * self.unprocessed


class _Run:
    """A started iteration."""

    __slots__ = ("cost_us", "in_time_us", "measure", "since")

    def __init__(self, measure: QueryMeasure, cost_us: int, since: int) -> None:
        self.measure = measure
        self.cost_us = cost_us
        self.since: int | None = since  # None: it is paused
        self.in_time_us = 0  # time that it ran before its deadline, up to the last pause

    def ran_until(self, now: int, deadline: int) -> int:
        """How long it has run before its deadline."""
        return self.in_time_us + (0 if self.since is None else max(0, min(now, deadline) - self.since))


class SimulatedIterations(SimulatedKind[Iteration]):
    """The simulated jobs of queries. `windows` are by query, including those that join later.

    `reschedulings` are by kernel pool, for pools that shed. `watch` is called for each iteration that ends,
    and at the end of the run for those that should have ended.
    """

    job = Iteration

    def __init__(
        self,
        windows: Mapping[str, QueryWindows],
        watch: Callable[[IterationOutcome], None],
        reschedulings: Mapping[str, Rescheduling],
    ) -> None:
        self._windows = windows
        self._watch = watch
        self._reschedulings = reschedulings
        self._runs: dict[Iteration, _Run] = {}
        self._driver: SimulatedDriver | None = None
        self._kernel: Kernel

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        """Schedules measurements with that driver, the first one now."""
        self._driver = driver
        self._begin_measuring()

    def begins(self, kernel: Kernel) -> None:
        self._kernel = kernel
        if self._driver is not None:  # after a crash: a new runner measures first, too
            self._begin_measuring()

    def cost_us(self, job: Iteration) -> int:
        measure = self._windows[job.task.name].measure(job.window_from, job.window_to)
        cost_us = measure.cost_of(job.keep)
        if job.budget_us is not None:
            cost_us = min(cost_us, job.budget_us)
        self._runs[job] = _Run(measure, cost_us, job.start)
        return cost_us

    def part_ends_us(self, job: Iteration, ran_us: int) -> int:
        part_us = job.task.asked.part_us
        return -(-ran_us // part_us) * part_us if part_us else ran_us

    def paused(self, now: int, job: Iteration) -> None:
        run = self._runs[job]
        run.in_time_us = run.ran_until(now, job.deadline)
        run.since = None

    def goes_on(self, now: int, job: Iteration) -> None:
        self._runs[job].since = now

    def ended(self, now: int, job: Iteration) -> Event:
        run = self._runs.pop(job)
        outcome = _outcome_of(run, now, job, now)
        self._watch(outcome)
        pool = job.task.pool.name
        rescheduling = self._reschedulings.get(pool)
        if rescheduling is not None and rescheduling.is_due(outcome.error):
            self._measure_at(now, pool)
        return IterationFinished(job)

    def crashed(self, now: int) -> None:
        # Lost iterations count no more than those that would have been released meanwhile.
        self._runs.clear()

    def node_crashed(self, now: int, tasks: Collection[str]) -> None:
        self._runs = {job: run for job, run in self._runs.items() if job.task.name not in tasks}

    def over(self, end: int, kernel: Kernel) -> None:
        for task in queries_of(kernel):
            for outcome in self._unfinished(end, task):
                if outcome.deadline <= end:
                    self._watch(outcome)

    def _unfinished(self, now: int, task: QueryTask) -> Iterator[IterationOutcome]:
        """The outcomes of released iterations if nothing more is done."""
        if task.job is not None:
            yield _outcome_of(self._runs[task.job], now, task.job, None)
        for released in task.waiting:
            to_us = released.window_to
            measure = self._windows[task.name].measure(to_us - task.window_us, to_us)
            yield _outcome(task, measure, released.at, None, released.allowance.keep, Fraction(0))

    def _begin_measuring(self) -> None:
        for pool in self._reschedulings:
            self._measure_at(self._kernel.now, pool)

    def _measure_at(self, at: int, pool: str) -> None:
        assert self._driver is not None, "there is no driver to tell"
        kernel = self._kernel
        self._driver.tell(at, lambda now: self._measured(now, pool) if kernel is self._kernel else None)

    def _measured(self, now: int, pool: str) -> LoadMeasured:
        rescheduling = self._reschedulings[pool]
        queries = [task for task in queries_of(self._kernel) if task.pool.name == pool]
        rescheduling.done()
        next_at = rescheduling.next_at(now, [task.stride_us for task in queries])
        if next_at is not None:
            self._measure_at(next_at, pool)
        windows = self._windows
        return LoadMeasured(
            {task.name: windows[task.name].measure(now - task.window_us, now) for task in queries}
        )


def _outcome_of(run: _Run, now: int, job: Iteration, finished: int | None) -> IterationOutcome:
    """The outcome of a started iteration, by what it has read at its deadline."""
    keep = run.measure.keep_in(run.cost_us) if job.keep == 1 else job.keep
    processed = keep
    if finished is None or finished > job.deadline:
        processed = min(keep, run.measure.keep_in(run.ran_until(now, job.deadline)))
    return _outcome(job.task, run.measure, job.release, finished, keep, processed)


def _outcome(
    task: QueryTask,
    measure: QueryMeasure,
    released: int,
    finished: int | None,
    keep: Fraction,
    processed: Fraction,
) -> IterationOutcome:
    unprocessed = measure.tuples * (1 - processed)
    worth = task.asked.weight * measure.selectivity
    deadline = released + task.deadline_us
    return IterationOutcome(task.name, released, deadline, finished, keep, measure.tuples, unprocessed, worth)
