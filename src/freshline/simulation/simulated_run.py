"""One simulated run of a plan: all its parts, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from freshline import __version__
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.job import Job
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.steps.job import StepJob
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.plan import Plan
from freshline.simulation.answers import SimulatedAnswers
from freshline.simulation.arrivals import FeedArrivals
from freshline.simulation.assertions import Assertions
from freshline.simulation.conditions import Conditions
from freshline.simulation.crashes import crash
from freshline.simulation.driver import FeedFiles, SimulatedDriver, SimulatedKind
from freshline.simulation.failures import JobFailures
from freshline.simulation.gaps import gaps_of_sources
from freshline.simulation.outages import InterruptedFeed, Outage
from freshline.simulation.slow import SlowedCosts
from freshline.simulation.steps import SimulatedSteps
from freshline.simulation.updates import SimulatedUpdates, UpdateCosts, UpdateWitness


class SimulatedRun:
    """From instant 0 on, all tables empty; with kernels one after the other where the runner crashes."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        conditions: Conditions,
        witness: UpdateWitness | None = None,
        journal: Journal | None = None,
    ) -> None:
        warehouse = plan.warehouse
        self.plan = plan
        self.conditions = conditions
        self.failures = JobFailures(conditions.failures, seed) if conditions.failures else None
        # Where all goes well every bound is asserted throughout, and nobody has to ask for each job. A table
        # with a threshold of its own may recover without anything going wrong, and is not asserted then.
        thresholds = any(table.late_after_us is not None for table in warehouse.tables.values())
        asked = conditions.outages or conditions.failures or conditions.crashes or thresholds
        self.assertions = Assertions(plan, conditions.outages) if asked else None
        without_rows = gaps_of_sources(warehouse, conditions.gaps) if conditions.gaps else None
        costs = _costs(warehouse, seed, conditions.slow)
        self.updates = SimulatedUpdates(costs, witness, without_rows, self.failures, self.assertions)
        self.kernels = [assemble(plan)]
        used = {table.feed for table in warehouse.stored.values()}
        files = {
            name: files_of(feed, seed, conditions.outages.get(name, ()))
            for name, feed in warehouse.feeds.items()
            if feed.arrival == "files" and name in used
        }
        kinds: dict[type[Job], SimulatedKind[Any]] = {Update: self.updates}
        self.answers = SimulatedAnswers(plan, conditions.gaps, conditions.slow) if plan.queries else None
        if self.answers is not None:
            kinds[Iteration] = self.answers.iterations
        self.steps = None
        if plan.placed is not None:
            self.steps = SimulatedSteps(warehouse, plan.placed, seed, conditions.slow, self.failures)
        if self.steps is not None:
            kinds[StepJob] = self.steps
        self.driver = SimulatedDriver(self.kernels[0], kinds, files, journal)
        if self.answers is not None:
            self.answers.iterations.attach(self.driver)

    @property
    def kernel(self) -> Kernel:
        """The one that runs, or ran last."""
        return self.kernels[-1]

    def run(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Up to and including the instant `end`."""
        if self.answers is not None:
            self.answers.end = end
        for start, back_at in self.conditions.crashes:
            self.driver.advance(start - 1, progress)
            self.kernels.append(crash(self.driver, self.plan, start, back_at))
        self.driver.run(end, progress)


def header_of(plan: Plan, end: int, seed: int, conditions: Conditions) -> dict[str, Any]:
    """The first line of a run's journal: which run it was."""
    header: dict[str, Any] = {"freshline": __version__, "seed": seed, "end": end, "now": 0, "freshness": None}
    if plan.placed is not None:
        header["placement"] = plan.placed.record()
    return {**header, **conditions.record(), "warehouse": to_record(plan.warehouse)}


def files_of(feed: Feed, seed: int, outages: Sequence[Outage]) -> FeedFiles:
    """The files of a feed, for a seed."""
    arrivals = FeedArrivals(feed, seed)
    return InterruptedFeed(arrivals, outages) if outages else arrivals


def _costs(warehouse: Warehouse, seed: int, slow: Mapping[str, Fraction]) -> dict[str, UpdateCosts]:
    costs: dict[str, UpdateCosts] = {}
    for name, table in warehouse.tables.items():
        assert table.cost is not None, "a plan has all costs"
        draws = CostDraws(table.cost, seed, name)
        costs[name] = SlowedCosts(draws, slow[name]) if name in slow else draws
    return costs
