"""Random outages, and whether all that was promised for them was kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from freshline.assembly.assemble import assemble
from freshline.costs.draws import CostDraws
from freshline.definitions.policies import PolicyName
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.validation import validate
from freshline.plan.make import make_plan, what_if
from freshline.plan.plan import Plan
from freshline.recovery.aus import admission
from freshline.recovery.modes import AdaptiveRelease, recovery_rule
from freshline.recovery.terms import Recovery
from freshline.simulation.driver import Driver
from freshline.simulation.gaps import Gaps, gaps_of_sources
from freshline.simulation.outages import Outages, downstream
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import Updates
from freshline.tables.task import tables_of
from freshline.tables.update import Update


@dataclass(slots=True)
class Kept:
    """What a run with outages showed."""

    plan: Plan
    jobs: int = 0
    jumps: int = 0  # jobs that went on over time without rows
    recoveries: list[Recovery] = field(default_factory=list)
    exceeded: list[str] = field(default_factory=list)  # bounds
    outlasted: list[str] = field(default_factory=list)  # promises
    tightest_bound: float = 0.0  # staleness over bound, of what was asserted
    tightest_promise: float = 0.0  # time taken over time promised
    certificates: int = 0


class _Witness:
    """Looks at every job that ends, just before the kernel hears of it."""

    def __init__(self, plan: Plan, kept: Kept) -> None:
        self._plan = plan
        self._kept = kept
        self.recoveries: dict[tuple[str, int], Recovery] = {}

    def finished(self, now: int, job: Update, freshness: int) -> None:
        task, rule = job.task, recovery_rule(job.task)
        self._kept.jobs += 1
        self._kept.jumps += freshness > job.loaded_to
        if rule is not None:
            self.note(task.name, rule)
            if rule.excused:
                return
        bound_us = self._plan.tables[task.place].staleness_bound_us
        if bound_us is not None:
            self.compare(task.name, now - job.loaded_from, bound_us, now)

    def note(self, name: str, rule: AdaptiveRelease) -> None:
        if rule.recovery is not None:
            self.recoveries[name, rule.recovery.entered] = rule.recovery

    def compare(self, name: str, staleness_us: int, bound_us: int, now: int) -> None:
        self._kept.tightest_bound = max(self._kept.tightest_bound, staleness_us / bound_us)
        if staleness_us > bound_us:
            self._kept.exceeded.append(f"{name} at {now}: {staleness_us} > {bound_us}")


def run_with_outages(
    warehouse: Warehouse,
    policy: PolicyName,
    outages: Outages,
    end: int,
    seed: int = 0,
    gaps: Gaps | None = None,
) -> Kept:
    """Simulates a warehouse under another policy, and compares what happens with what was proven.

    A bound is asserted of every table without an outage upstream, always; of the others but for the time from
    an outage until they have caught up. A recovery must be over when it was promised to be.
    """
    plan = make_plan(what_if(warehouse, policy, {}))
    kernel = assemble(plan)
    kept = Kept(plan)
    witness = _Witness(plan, kept)
    costs = {}
    for definition in warehouse.tables.values():
        assert definition.cost is not None
        costs[definition.name] = CostDraws(definition.cost, seed, definition.name)
    files = {
        name: files_of(feed, seed, outages.get(name, ()))
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files"
    }
    without_rows = gaps_of_sources(warehouse, gaps) if gaps else None
    updates = Updates(costs, witness, without_rows)
    Driver(kernel, {Update: updates}, files).run(end)
    validate(kernel)
    affected = downstream(warehouse, outages)
    for task, table in zip(tables_of(kernel), plan.tables, strict=True):
        rule = recovery_rule(task)
        if rule is not None:
            witness.note(task.name, rule)
        if task.name not in affected and table.staleness_bound_us is not None:
            staleness_us = updates.observation.tables[task.name].staleness_max_us
            witness.compare(task.name, staleness_us, table.staleness_bound_us, end)
    for (name, _), recovery in sorted(witness.recoveries.items()):
        kept.recoveries.append(recovery)
        ended = end if recovery.ended is None else recovery.ended
        if recovery.due is not None and recovery.due > recovery.entered:
            taken = (ended - recovery.entered) / (recovery.due - recovery.entered)
            kept.tightest_promise = max(kept.tightest_promise, taken)
            if ended > recovery.due:
                kept.outlasted.append(f"{name} of {recovery.entered}: {ended} > {recovery.due}")
    kept.certificates = sum(policy.certificates for policy in map(admission, kernel.pools) if policy)
    return kept
