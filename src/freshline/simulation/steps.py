"""Simulated steps: their costs, their ends, and the age of the rows of outputs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Self

from freshline.definitions.sections.feeds import Feed
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.recovery.terms import Recovery
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.job import StepJob, StepRun
from freshline.kernel.steps.recoveries import StepRecoveries, recoveries_of
from freshline.kernel.steps.task import steps_of
from freshline.planning.costs.draws import RowCostDraws
from freshline.planning.plan.step_graph import StepGraph
from freshline.planning.plan.step_placement import StepPlacement
from freshline.simulation.conditions.crashes import delayed_by
from freshline.simulation.kind import SimulatedKind, SimulationSetup
from freshline.simulation.rows import OutputRows, RowBatch, TableRows


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
    broke_proof: bool = False  # whether a row was late, or a recovery too long, against what was proven
    recovery: Recovery | None = None  # the last one, after an outage of its feed

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
    misses: int  # instances done after their deadline, or not done at the end though overdue; no recovery
    backlog: int  # instances not done at the end
    failed: int = 0  # jobs, each retried
    holds: ClassVar[bool] = True  # outputs count what is late


class SimulatedSteps(SimulatedKind[StepJob]):
    """The simulated jobs of steps. Every file has the most rows that its feed declares.

    `slow` has by step a factor on its costs. If one step of a job fails, the retry does all of them.
    """

    job = StepJob

    def __init__(self, setup: SimulationSetup, placed: StepPlacement) -> None:
        warehouse = setup.plan.warehouse
        self._warehouse = warehouse
        self._placed = placed
        self._slow = {name: float(factor) for name, factor in setup.conditions.slow.items()}
        self._failures = setup.failures
        self._proven = {output.name for output in setup.plan.outputs if output.holds}
        self._faultless_until = _first_faults_at(setup)
        # Promises of recovery count until the runner first fails, if no step costs more than is planned.
        self._promises_until = _promises_until(setup)
        self._recoveries: StepRecoveries | None = None
        self._broken: set[str] = set()  # outputs
        self._draws = {}
        for name, step in warehouse.steps.items():
            assert step.cost is not None, "a plan has all costs"
            speed = warehouse.nodes[placed.nodes[name]].speed
            self._draws[name] = RowCostDraws(step.cost, speed, setup.seed, name)
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
        return cls(setup, plan.placed)

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
            self._misses[part.name] += not part.instance.recovery and now > part.instance.deadline
            latencies = self._latencies.get(part.name)
            if latencies is not None:
                for each in rows:
                    latencies.came_out(now, each)
                    if latencies.is_late(now, each) and self._asserts(part.name, now):
                        self._broken.add(part.name)
        return StepsCommitted(job)

    def begins(self, kernel: Kernel) -> None:
        self._recoveries = recoveries_of(kernel)

    def crashed(self, now: int) -> None:
        self._compare_promises(now)

    def _compare_promises(self, now: int) -> None:
        """Takes note of recoveries that took longer than promised, if only feeds have failed until now."""
        if self._recoveries is not None and self._promises_until >= now and not self._has_failed:
            self._broken |= self._recoveries.broken(now) & self._proven

    def found(self, kernel: Kernel) -> dict[str, int]:
        return {step.name: step.freshness for step in steps_of(kernel)}

    def over(self, end: int, kernel: Kernel) -> None:
        for step in steps_of(kernel):
            self._misses[step.name] += sum(deadline < end for deadline in step.rule.unfinished_deadlines())
            self._backlog[step.name] = len(step.waiting) + (step.job is not None)
        self._compare_promises(end)

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
                    name in self._broken,
                    None if self._recoveries is None else self._recoveries.last.get(name),
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

    def _asserts(self, output: str, now: int) -> bool:
        """Whether the output is proven, and nothing has gone wrong that its proof does not count."""
        return output in self._proven and now < self._faultless_until[output] and not self._has_failed

    @property
    def _has_failed(self) -> bool:
        """Whether a job has failed."""
        return self._failures is not None and self._failures.first_at is not None

    def _read(self, part: StepRun) -> list[RowBatch]:
        """The rows that a step reads: of its file, or of its range from its sources."""
        step = self._warehouse.steps[part.name]
        if step.feed is not None:
            feed = self._warehouse.feeds[step.feed]
            before, found = self._newest.get(part.name), []
            for file in part.files:
                found.append(_rows_of(feed, part.instance.ready, file.timestamp, before))
                before = max(file.timestamp, before or 0)
            return found
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


def _first_faults_at(setup: SimulationSetup) -> dict[str, int]:
    """By step: when one of its feeds, the runner, or a node that delays it first fails.

    It is 0 if any step costs more than is planned. Outages of other feeds are no fault: their backlog gives
    way (docs/placement.md).
    """
    warehouse, conditions = setup.plan.warehouse, setup.conditions
    if _are_slow(setup):
        return dict.fromkeys(warehouse.steps, 0)
    placed = setup.plan.placed
    crashes = [(start, frozenset(warehouse.steps)) for start, _ in conditions.crashes]
    for node, spans in conditions.node_crashes.items():
        begun = [] if placed is None else [name for name, own in placed.nodes.items() if own == node]
        crashes.append((spans[0][0], delayed_by(warehouse, placed, begun)))
    found = {}
    for name, feeds in StepGraph(warehouse).feeds.items():
        faults = [times[0][0] for feed, times in conditions.outages.items() if feed in feeds]
        faults += [start for start, steps in crashes if name in steps]
        found[name] = min(faults, default=NEVER)
    return found


def _promises_until(setup: SimulationSetup) -> int:
    return 0 if _are_slow(setup) else setup.conditions.first_crash


def _are_slow(setup: SimulationSetup) -> bool:
    """Whether any step costs more than is planned."""
    steps = setup.plan.warehouse.steps
    return any(factor > 1 and name in steps for name, factor in setup.conditions.slow.items())


def _kept(feed: Feed) -> float:
    most, loaded = feed.rows_most, feed.rows_most_loaded
    return 1.0 if not most or loaded is None else float(loaded / most)


def _rows_of(feed: Feed, came_at: int, timestamp: int, before: int | None) -> RowBatch:
    """A file's rows: at most as old as its feed declares, and newer than those of the previous file.

    A file that an outage held back came too late for that: its age counts from its newest row.
    """
    newest = timestamp + feed.landing.lateness_us
    oldest = came_at - feed.oldest_us
    if oldest > newest:
        oldest = newest - feed.oldest_us
    if before is not None:
        oldest = max(oldest, min(newest, before + feed.landing.lateness_us))
    return RowBatch(oldest, newest, float(feed.rows_most or 1))
