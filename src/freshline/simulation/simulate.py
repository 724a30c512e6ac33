"""A what-if: run a planned warehouse in simulated time and see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TextIO

from freshline.kernel.core.journal import Journal
from freshline.kernel.recovery.aus import given_up
from freshline.kernel.recovery.modes import is_recovering, recovery_rule
from freshline.kernel.recovery.terms import Recovery
from freshline.kernel.tables.state import TableState, exceeds, table_state
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.planning.plan.plan import Plan, TablePlan
from freshline.simulation.answers import QueryResult
from freshline.simulation.conditions import checked
from freshline.simulation.crashes import Crash, Crashes
from freshline.simulation.gaps import Gap, Gaps
from freshline.simulation.job_records import JobRecords
from freshline.simulation.observation import TableMaxima
from freshline.simulation.outages import Outage, Outages, downstream
from freshline.simulation.simulated_run import SimulatedRun, header_of
from freshline.simulation.steps import OutputResult, StepResult


@dataclass(frozen=True, slots=True)
class TableResult:
    """What a run showed of one table, beside what was proven."""

    plan: TablePlan
    staleness_max_us: int
    lag_max_us: int
    jobs: int  # finished
    misses: int  # finished, or unfinished at the end, after the deadline
    state: TableState  # at the end
    # When its lag fell to a period or less for the last time since something first went wrong. None where it
    # was never above since then, or is so at the end.
    recovered_at_us: int | None
    # The worst while its bound was asserted; None where it never was, as with costs above those planned for.
    asserted_max_us: int | None
    failed: int = 0  # jobs that ended without effect
    recovery: Recovery | None = None  # the last one, of a table that its policy gives a recovery mode

    @property
    def exceeded_target(self) -> bool:
        return exceeds(self.staleness_max_us, self.plan.target_lag_us)

    @property
    def exceeded_bound(self) -> bool:
        """Whether it was while it was asserted: a flaw of the analysis or of the kernel."""
        return exceeds(self.asserted_max_us, self.plan.staleness_bound_us)


@dataclass(frozen=True, slots=True)
class PoolResult:
    """How busy a pool's tracks were."""

    name: str
    tracks: int
    busy: float  # tracks busy on average
    # When certificates were given up, and why (aus-slack only).
    given_up: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a run showed. Seed, version and all that it was put through replay it."""

    plan: Plan
    seed: int
    end: int
    outages: Outages
    gaps: Gaps
    slow: Mapping[str, Fraction]  # by table: what its costs were multiplied with
    pools: tuple[PoolResult, ...]
    tables: tuple[TableResult, ...]
    records: JobRecords | None  # of every job, where they were kept
    failures: Mapping[str, Fraction]  # by table: the chance that a job fails
    crashes: Crashes  # of the runner
    queries: tuple[QueryResult, ...] = ()
    outputs: tuple[OutputResult, ...] = ()
    steps: tuple[StepResult, ...] = ()

    @property
    def holds(self) -> bool:
        in_time = not any(query.misses or query.plan.refusal for query in self.queries)
        in_time = in_time and not any(output.misses for output in self.outputs)
        return in_time and not any(table.exceeded_target for table in self.tables)


def simulate(
    plan: Plan,
    end: int,
    seed: int = 0,
    *,
    outages: Mapping[str, Sequence[Outage]] | None = None,
    gaps: Mapping[str, Sequence[Gap]] | None = None,
    slow: Mapping[str, Fraction] | None = None,
    failures: Mapping[str, Fraction] | None = None,
    crashes: Sequence[Crash] = (),
    keep_records: bool = False,
    journal_to: TextIO | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Runs a planned warehouse from instant 0 up to `end`.

    `outages` says by feed from when to when it is down: the files of that time come at its end; `gaps` when
    it delivers on time, but no rows. `slow` says by table or query what its costs are multiplied with, of
    which the plan knows nothing, `failures` the chance that a job fails at its end. `crashes` says from when
    to when the runner is gone. Memory does not grow with the length of the run, except for the records of
    jobs (40 bytes each), if asked for.
    """
    conditions = checked(plan.warehouse, end, outages, gaps, slow, failures, crashes)
    records = JobRecords() if keep_records else None
    header = header_of(plan, end, seed, conditions)
    journal = None if journal_to is None else Journal(journal_to, header)
    run = SimulatedRun(plan, seed, conditions, records, journal)
    run.run(end, progress)
    if records is not None:
        records.ended(run.kernel, end)
    return SimulationResult(
        plan,
        seed,
        end,
        conditions.outages,
        conditions.gaps,
        conditions.slow,
        _pool_results(run, end),
        _table_results(run, end),
        records,
        conditions.failures,
        conditions.crashes,
        () if run.answers is None else run.answers.results(),
        () if run.steps is None else run.steps.outputs(),
        () if run.steps is None else run.steps.steps(),
    )


def _pool_results(run: SimulatedRun, end: int) -> tuple[PoolResult, ...]:
    broken: dict[str, list[tuple[int, str]]] = {}
    for kernel in run.kernels:
        for assembled in kernel.pools:
            broken.setdefault(assembled.name, []).extend(given_up(assembled))
    pools = []
    first_track = 0
    for pool in run.plan.pools:
        tracks = range(first_track, first_track + pool.tracks)
        busy_us = sum(run.driver.busy_us.get(track, 0) for track in tracks)
        # A pool that is run in clusters is there by other names.
        gave_up = tuple(broken.get(pool.name, ()))
        pools.append(PoolResult(pool.name, pool.tracks, busy_us / end if end else 0.0, gave_up))
        first_track += pool.tracks
    return tuple(pools)


def _table_results(run: SimulatedRun, end: int) -> tuple[TableResult, ...]:
    plan, failures = run.plan, run.failures
    went_wrong = _WentWrong(run, end)
    results = []
    for table, task in zip(plan.tables, tables_of(run.kernel), strict=True):
        seen = run.updates.observation.tables[task.name]
        lag_us = task.intake.trailing_edge(end) - task.freshness
        recovered = seen.behind_at >= went_wrong.first_at and lag_us <= task.period_us
        results.append(
            TableResult(
                plan=table,
                staleness_max_us=seen.staleness_max_us,
                lag_max_us=seen.lag_max_us,
                jobs=seen.jobs,
                misses=seen.misses,
                state=_state(table, task, lag_us, went_wrong),
                recovered_at_us=seen.behind_at if recovered else None,
                asserted_max_us=_asserted_max_us(run, table, seen),
                failed=0 if failures is None else failures.count.get(task.name, 0),
                recovery=_recovery(task),
            )
        )
    return tuple(results)


def _asserted_max_us(run: SimulatedRun, table: TablePlan, seen: TableMaxima) -> int | None:
    warehouse, conditions = run.plan.warehouse, run.conditions
    slow = any(factor > 1 for name, factor in conditions.slow.items() if name in warehouse.stored)
    # Bounds of tables count with steps that are in time.
    if table.expected or slow or not warehouse.steps.keys().isdisjoint(conditions.failures):
        return None
    if run.assertions is None:
        return seen.staleness_max_us
    return run.assertions.max_us(table.name)


class _WentWrong:
    """What went wrong up to the end of a run, and for which tables."""

    def __init__(self, run: SimulatedRun, end: int) -> None:
        warehouse, conditions, failures = run.plan.warehouse, run.conditions, run.failures
        begun = {feed: times for feed, times in conditions.outages.items() if times[0][0] <= end}
        instants = [times[0][0] for times in begun.values()]
        instants += [start for start, _ in conditions.crashes]
        failed: list[str] = []
        self.failing: frozenset[str] = frozenset()
        if failures is not None and failures.first_at is not None:
            instants.append(failures.first_at)
            failed = [name for name, count in failures.count.items() if count]
            self.failing = frozenset(filter(failures.is_failing, failed))
        self.first_at = min(instants, default=end + 1)
        self.below_failing = downstream(warehouse, (), self.failing) - self.failing
        self.affected = downstream(warehouse, begun, warehouse.tables if conditions.crashes else failed)
        silent = {feed for feed, times in begun.items() if any(start <= end < over for start, over in times)}
        self.silent = frozenset(name for name, table in warehouse.tables.items() if table.feed in silent)


def _recovery(task: TableTask) -> Recovery | None:
    rule = recovery_rule(task)
    return None if rule is None else rule.recovery


def _state(table: TablePlan, task: TableTask, lag_us: int, went_wrong: _WentWrong) -> TableState:
    rule = recovery_rule(task)
    return table_state(
        loaded=task.freshness > 0,
        lag_us=lag_us,
        period_us=task.period_us,
        staleness_bound_us=rule.terms.threshold_us if rule else table.staleness_bound_us,
        silent=table.name in went_wrong.silent,
        failed=table.name in went_wrong.failing,
        upstream_failed=table.name in went_wrong.below_failing,
        # A policy with a recovery mode says itself which tables recover.
        recovering=table.name in went_wrong.affected and rule is None,
        in_recovery=is_recovering(task),
    )
