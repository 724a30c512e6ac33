"""Simulated steps: their costs, their ends, and the age of the rows of outputs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, Final, NamedTuple, Self

from freshline.base.latency_histogram import LatencyHistogram
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.job import StepJob, StepRun
from freshline.kernel.steps.task import steps_of
from freshline.planning.costs.draws import RowCostDraws
from freshline.planning.plan.step_placement import StepPlacement
from freshline.simulation.conditions.failures import JobFailures
from freshline.simulation.kind import SimulatedKind, SimulationSetup

# Rows over a span count as this many points, in the middle of equal parts.
_POINTS: Final = 8


class RowBatch(NamedTuple):
    """Rows made evenly between two instants; at one instant if these are the same."""

    since: int
    until: int
    number: float

    def within(self, after: int, until: int) -> RowBatch | None:
        """The rows of (after, until]."""
        if self.since == self.until:
            return self if after < self.until <= until else None
        low, high = max(self.since, after), min(self.until, until)
        if low >= high:
            return None
        return RowBatch(low, high, self.number * (high - low) / (self.until - self.since))

    def times(self, selectivity: float) -> RowBatch:
        return self._replace(number=self.number * selectivity)


class TableRows:
    """The rows that a step has made, as long as another step may read them."""

    def __init__(self) -> None:
        self._made: deque[RowBatch] = deque()

    def add(self, rows: Iterable[RowBatch]) -> None:
        self._made.extend(rows)

    def within(self, after: int, until: int) -> Iterator[RowBatch]:
        for rows in self._made:
            found = rows.within(after, until)
            if found is not None:
                yield found

    def forget(self, until: int) -> None:
        """Drops the rows up to then, which no step reads any more."""
        while self._made and self._made[0].until <= until:
            self._made.popleft()


class OutputRows:
    """The age of an output's rows when they come out, and how many were too old."""

    def __init__(self, deadline_us: int) -> None:
        self.latencies = LatencyHistogram(centred=True)
        self.misses = 0.0
        self._deadline_us = deadline_us

    def came_out(self, now: int, rows: RowBatch) -> None:
        if not rows.number:
            return
        points = 1 if rows.since == rows.until else _POINTS
        length_us = rows.until - rows.since
        made = [rows.since + length_us * (2 * point + 1) // (2 * points) for point in range(points)]
        self.latencies.add_spread([now - at for at in made], rows.number, now - rows.since)
        late = rows.within(rows.since - 1, now - self._deadline_us - 1)
        if late is not None:
            self.misses += late.number


@dataclass(frozen=True, slots=True)
class OutputResult:
    """The result of one output."""

    name: str
    node: str
    deadline_us: int
    rows: int
    misses: int
    latency_p50_us: int | None
    latency_p95_us: int | None
    latency_max_us: int | None

    @property
    def holds(self) -> bool:
        return not self.misses


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step."""

    name: str
    node: str
    sub_deadline_us: int
    jobs: int
    misses: int  # instances done after their deadline, or not done at the end though overdue
    backlog: int  # instances not done at the end
    failed: int = 0  # jobs, each retried
    holds: ClassVar[bool] = True  # outputs count what is late


class SimulatedSteps(SimulatedKind[StepJob]):
    """The simulated jobs of steps. Every file has the most rows that its feed declares.

    `slow` has by step a factor on its costs. If one step of a job fails, the retry does all of them.
    """

    job = StepJob

    def __init__(
        self,
        warehouse: Warehouse,
        placed: StepPlacement,
        seed: int,
        slow: Mapping[str, Fraction] | None = None,
        failures: JobFailures | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._placed = placed
        self._slow = {name: float(factor) for name, factor in (slow or {}).items()}
        self._failures = failures
        self._draws = {}
        for name, step in warehouse.steps.items():
            assert step.cost is not None, "a plan has all costs"
            speed = warehouse.nodes[placed.nodes[name]].speed
            self._draws[name] = RowCostDraws(step.cost, speed, seed, name)
        self._made = {name: TableRows() for name in warehouse.steps}
        self._readers: dict[str, list[str]] = {name: [] for name in warehouse.steps}
        for name, step in warehouse.steps.items():
            for source in step.sources:
                self._readers[source].append(name)
        # The share of its rows that a step passes on; for a feed that sheds, of those that are left.
        self._selectivity = {
            name: float(step.selectivity) * (1.0 if step.feed is None else _kept(warehouse.feeds[step.feed]))
            for name, step in warehouse.steps.items()
        }
        self._newest: dict[str, int] = {}  # by step that loads a feed: its newest loaded timestamp
        self._latencies = {
            name: OutputRows(step.deadline_us)
            for name, step in warehouse.steps.items()
            if step.deadline_us is not None
        }
        self._reached: dict[str, int] = dict.fromkeys(warehouse.steps, 0)
        self._jobs: defaultdict[str, int] = defaultdict(int)
        self._misses: defaultdict[str, int] = defaultdict(int)
        self._backlog: dict[str, int] = {}

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self | None:
        plan = setup.plan
        if plan.placed is None:
            return None
        return cls(plan.warehouse, plan.placed, setup.seed, setup.conditions.slow, setup.failures)

    def cost_us(self, job: StepJob) -> int:
        cost_us, before = 0, None
        for part in job.parts:
            rows = self._read(part) if before is None else self._through(part, before)
            count = sum(each.number for each in rows)
            if count or part.files:
                cost_us += int(self._draws[part.name].draw_us(count) * self._slow.get(part.name, 1.0)) or 1
            before = rows
        return cost_us

    def ended(self, now: int, job: StepJob) -> Event:
        if self._failures is not None:
            for part in job.parts:
                retry_at = self._failures.fails(part.name, now)
                if retry_at is not None:
                    return JobFailed(job, retry_at)
        for part in job.parts:
            rows = [each.times(self._selectivity[part.name]) for each in self._read(part)]
            if part.files:
                self._newest[part.name] = max(part.loaded_to, self._newest.get(part.name, 0))
            self._made[part.name].add(rows)
            self._reached[part.name] = part.loaded_to
            self._forget(part.name)
            self._jobs[part.name] += 1
            self._misses[part.name] += now > part.instance.deadline
            latencies = self._latencies.get(part.name)
            if latencies is not None:
                for each in rows:
                    latencies.came_out(now, each)
        return StepsCommitted(job)

    def found(self, kernel: Kernel) -> dict[str, int]:
        return {step.name: step.freshness for step in steps_of(kernel)}

    def over(self, end: int, kernel: Kernel) -> None:
        for step in steps_of(kernel):
            self._misses[step.name] += sum(deadline < end for deadline in step.rule.unfinished_deadlines())
            self._backlog[step.name] = len(step.waiting) + (step.job is not None)

    def results(self, kernel: Kernel, end: int) -> list[OutputResult | StepResult]:
        return [*self._outputs(), *self._steps()]

    def _outputs(self) -> tuple[OutputResult, ...]:
        found = []
        for name, seen in self._latencies.items():
            deadline_us = self._warehouse.steps[name].deadline_us
            assert deadline_us is not None
            found.append(
                OutputResult(
                    name,
                    self._placed.nodes[name],
                    deadline_us,
                    round(seen.latencies.rows),
                    ceil(seen.misses - 1e-6),
                    seen.latencies.quantile_us(0.5),
                    seen.latencies.quantile_us(0.95),
                    seen.latencies.max_us,
                )
            )
        return tuple(found)

    def _steps(self) -> tuple[StepResult, ...]:
        placed = self._placed
        return tuple(
            StepResult(
                name,
                placed.nodes[name],
                placed.sub_deadlines_us[name],
                self._jobs[name],
                self._misses[name],
                self._backlog.get(name, 0),
                0 if self._failures is None else self._failures.count.get(name, 0),
            )
            for name in self._warehouse.steps
        )

    def _read(self, part: StepRun) -> list[RowBatch]:
        """The rows that a step reads: of its file, or of its range from its sources."""
        step = self._warehouse.steps[part.name]
        if step.feed is not None:
            feed = self._warehouse.feeds[step.feed]
            return [_rows_of(feed, file.timestamp, self._newest.get(part.name)) for file in part.files]
        after, until = part.loaded_from, part.loaded_to
        return [rows for source in step.sources for rows in self._made[source].within(after, until)]

    def _through(self, part: StepRun, before: list[RowBatch]) -> list[RowBatch]:
        """The rows that a later step of a job reads: those that the step before makes of its own."""
        (source,) = self._warehouse.steps[part.name].sources
        kept = list(self._made[source].within(part.loaded_from, part.loaded_to))
        made = [rows.times(self._selectivity[source]) for rows in before]
        found = (rows.within(part.loaded_from, part.loaded_to) for rows in made)
        return kept + [rows for rows in found if rows is not None]

    def _forget(self, name: str) -> None:
        """Drops rows that all readers have read; an output's own rows entirely."""
        for source in (*self._warehouse.steps[name].sources, name):
            read = [self._reached[reader] for reader in self._readers[source]]
            self._made[source].forget(min(read, default=self._reached[source]))


def _kept(feed: Feed) -> float:
    most, loaded = feed.rows_most, feed.rows_most_loaded
    return 1.0 if not most or loaded is None else float(loaded / most)


def _rows_of(feed: Feed, timestamp: int, before: int | None) -> RowBatch:
    """A file's rows: at most as old as its feed declares, and newer than those of the previous file."""
    newest = timestamp + feed.landing.lateness_us
    oldest = newest - feed.age_us
    if before is not None:
        oldest = max(oldest, min(newest, before + feed.landing.lateness_us))
    return RowBatch(oldest, newest, float(feed.rows_most or 1))
