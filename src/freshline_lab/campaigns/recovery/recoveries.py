"""Runs with faults, and whether all proven bounds and promised recoveries were kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TextIO

from freshline.definitions.language.policies import PolicyName
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.aus import admission
from freshline.kernel.recovery.modes import recovery_rule
from freshline.kernel.recovery.terms import Recovery
from freshline.kernel.tables.batches import BatchCost
from freshline.kernel.tables.events import BatchCostsLearned
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan, what_if
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.conditions.gaps import Gaps
from freshline.simulation.conditions.outages import Outages, downstream
from freshline.simulation.kind import KindResult
from freshline.simulation.simulated_run import SimulatedRun, header_of
from freshline.simulation.tables import SimulatedTables
from freshline_lab.campaigns.recovery.once import LoadedOnce


@dataclass(slots=True)
class RecoveryReport:
    """The findings of a run with faults."""

    plan: Plan
    jobs: int = 0
    jumps: int = 0  # jobs that skipped time without rows
    batches: int = 0  # jobs of several files
    failures: int = 0
    crashes: int = 0
    files: int = 0  # by each table that loads the feed
    recoveries: list[Recovery] = field(default_factory=list)
    exceeded: list[str] = field(default_factory=list)  # bounds
    outlasted: list[str] = field(default_factory=list)  # promises
    not_once: list[str] = field(default_factory=list)  # loaded twice, forgotten, or out of order
    tightest_bound: float = 0.0  # staleness over bound, while asserted
    tightest_promise: float = 0.0  # time taken over time promised
    certificates: int = 0
    results: tuple[KindResult, ...] = ()  # of all kinds of work

    @property
    def wrong(self) -> list[str]:
        return self.exceeded + self.outlasted + self.not_once


class _Witness:
    """Examines every successful job, just before the kernel takes its end."""

    def __init__(self, plan: Plan, kept: RecoveryReport, once: LoadedOnce, excused: frozenset[str]) -> None:
        self._kept = kept
        self._once = once
        self._excused = excused
        self._bounds_us = {
            table.name: None if table.name in excused else table.staleness_bound_us for table in plan.tables
        }
        # A policy knows outages of the feeds of tables only, not of the steps that tables read.
        steps = plan.warehouse.steps
        self._over_steps = downstream(plan.warehouse, (), steps) if steps else frozenset()
        self.run: SimulatedRun
        self.recoveries: dict[tuple[str, int], Recovery] = {}

    def finished(self, now: int, job: Update, freshness: int) -> None:
        task, rule = job.task, recovery_rule(job.task)
        self._kept.jobs += 1
        self._kept.jumps += freshness > job.loaded_to
        self._kept.batches += len(job.files) > 1
        self._once.finished(now, job, freshness)
        self.note(task)
        # Until a first restart, the policy itself asserts bounds correctly.
        asserts = rule is not None and not rule.excused and task.name not in self._over_steps
        if asserts and len(self.run.kernels) == 1 and self._counts(task):
            self.compare(task.name, now, now - job.loaded_from)

    def note(self, task: TableTask) -> None:
        rule = recovery_rule(task)
        if rule is not None and rule.recovery is not None and self._counts(task):
            self.recoveries[task.name, rule.recovery.entered] = rule.recovery

    def _counts(self, task: TableTask) -> bool:
        if task.name in self._excused:
            return False
        assertions = self.run.kind(SimulatedTables).assertions
        return assertions is None or assertions.promises_count(task)

    def compare(self, name: str, now: int, staleness_us: int) -> None:
        bound_us = self._bounds_us[name]
        if bound_us is None:
            return
        self._kept.tightest_bound = max(self._kept.tightest_bound, staleness_us / bound_us)
        if staleness_us > bound_us:
            self._kept.exceeded.append(f"{name} at {now}: {staleness_us} > {bound_us}")


def run_through(
    warehouse: Warehouse,
    policy: PolicyName | None,
    conditions: Conditions,
    end: int,
    seed: int = 0,
    log: TextIO | None = None,
    known_batches: bool = False,
) -> RecoveryReport:
    """Simulates a warehouse, maybe under another policy, and compares the run with what was proven.

    With `known_batches` several files are known to cost no more than one at worst, so released jobs take
    several too. A bound is asserted except from an outage, a failure or a crash until the table is fresh. A
    recovery must end by its promised time. Every file is loaded once, in order.
    """
    plan = make_plan(what_if(warehouse, policy, {}))
    return run_planned(plan, conditions, end, seed, log, known_batches)


def run_planned(
    plan: Plan,
    conditions: Conditions,
    end: int,
    seed: int = 0,
    log: TextIO | None = None,
    known_batches: bool = False,
    excused: frozenset[str] = frozenset(),
) -> RecoveryReport:
    """The same for a plan; of tables that are `excused`, or have expected bounds, only the files count."""
    excused |= {table.name for table in plan.tables if table.expected}
    kept = RecoveryReport(plan)
    once = LoadedOnce(plan.warehouse, seed, conditions.outages)
    witness = _Witness(plan, kept, once, excused)
    journal = None if log is None else Journal(log, header_of(plan, end, seed, conditions))
    witness.run = run = SimulatedRun(plan, seed, conditions, witness, journal)
    tables = run.kind(SimulatedTables)
    if tables.assertions is not None:
        tables.assertions.compared = witness.compare
    if known_batches:
        of_nodes = [crash for crashes in conditions.node_crashes.values() for crash in crashes]
        for at in (0, *(back_at for _, back_at in (*conditions.crashes, *of_nodes))):
            run.driver.tell(at + 1, BatchCostsLearned(_known_batches(plan, seed)))
    run.run(end)
    validate(run.kernel)
    kept.results = run.results(end)
    if tables.assertions is None:
        for name, seen in tables.observation.tables.items():
            witness.compare(name, end, seen.staleness_max_us)
    once.ended(end, run.kernel)
    kept.not_once, kept.files = once.wrong, once.files
    kept.crashes = len(conditions.crashes) + sum(map(len, conditions.node_crashes.values()))
    kept.failures = 0 if run.failures is None else sum(run.failures.count.values())
    for kernel in run.kernels[:-1]:  # a lost kernel keeps no promise
        for task in tables_of(kernel):
            rule = recovery_rule(task)
            if rule is not None and rule.recovery is not None and rule.recovery.ended is None:
                rule.recovery.due = None
    for task in tables_of(run.kernel):
        witness.note(task)
    _compare_promises(kept, witness.recoveries, end)
    policies = [admission(pool) for kernel in run.kernels for pool in kernel.pools]
    kept.certificates = sum(policy.certificates for policy in policies if policy)
    return kept


def _known_batches(plan: Plan, seed: int) -> dict[str, BatchCost]:
    """By table: 2 to 8 files cost together as much as one at worst."""
    loaded = [table for table in plan.tables if plan.warehouse.tables[table.name].feed is not None]
    return {
        table.name: BatchCost(1, table.cost_us * 1_000 // (2 + (seed + place) % 7), 0)
        for place, table in enumerate(loaded)
    }


def run_with_outages(
    warehouse: Warehouse,
    policy: PolicyName,
    outages: Outages,
    end: int,
    seed: int = 0,
    gaps: Gaps | None = None,
) -> RecoveryReport:
    """The same if only feeds fail."""
    return run_through(warehouse, policy, Conditions(outages=outages, gaps=gaps or {}), end, seed)


def _compare_promises(kept: RecoveryReport, recoveries: dict[tuple[str, int], Recovery], end: int) -> None:
    for (name, _), recovery in sorted(recoveries.items()):
        kept.recoveries.append(recovery)
        ended = end if recovery.ended is None else recovery.ended
        if recovery.due is not None and recovery.due > recovery.entered:
            taken = (ended - recovery.entered) / (recovery.due - recovery.entered)
            kept.tightest_promise = max(kept.tightest_promise, taken)
            if ended > recovery.due:
                kept.outlasted.append(f"{name} of {recovery.entered}: {ended} > {recovery.due}")
