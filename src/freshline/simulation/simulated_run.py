"""One simulated run of a plan, with all its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from freshline import __version__
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.serial import to_record
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.planning.plan.plan import Plan
from freshline.simulation.arrivals import FeedArrivals
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.conditions.crashes import crash
from freshline.simulation.conditions.failures import JobFailures
from freshline.simulation.conditions.outages import InterruptedFeed, Outage
from freshline.simulation.driver import FeedFiles, SimulatedDriver
from freshline.simulation.kind import KindResult, SimulatedKind, SimulationSetup
from freshline.simulation.kinds import KINDS
from freshline.simulation.updates import UpdateWitness

K = TypeVar("K", bound=SimulatedKind[Any])


class SimulatedRun:
    """A run from instant 0 on with empty tables; each crash of the runner starts a new kernel."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        conditions: Conditions,
        witness: UpdateWitness | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.plan = plan
        self.conditions = conditions
        self.failures = JobFailures(conditions.failures, seed) if conditions.failures else None
        setup = SimulationSetup(plan, seed, conditions, self.failures, witness)
        self.kinds = [made for kind in KINDS if (made := kind.made_for(setup)) is not None]
        self.kernels = [assemble(plan)]
        used = {table.feed for table in plan.warehouse.stored.values()}
        files = {
            name: files_of(feed, seed, conditions.outages.get(name, ()))
            for name, feed in plan.warehouse.feeds.items()
            if feed.arrival == "files" and name in used
        }
        by_job = {kind.job: kind for kind in self.kinds}
        listeners = {said: heard for kind in self.kinds for said, heard in kind.listeners.items()}
        self.driver = SimulatedDriver(self.kernels[0], by_job, files, journal, listeners)

    @property
    def kernel(self) -> Kernel:
        """The current or last kernel."""
        return self.kernels[-1]

    def kind(self, kind: type[K]) -> K:
        """The run's kind of that class, which it must have."""
        return next(each for each in self.kinds if isinstance(each, kind))

    def run(self, end: int, progress: Callable[[int], None] | None = None) -> None:
        """Runs up to and including the instant `end`."""
        for kind in self.kinds:
            kind.attach(self.driver, end)
        for start, back_at in self.conditions.crashes:
            self.driver.advance(start - 1, progress)
            self.kernels.append(crash(self.driver, self.plan, self.kinds, start, back_at))
        self.driver.run(end, progress)

    def results(self, end: int) -> tuple[KindResult, ...]:
        """The results, kind by kind."""
        return tuple(result for kind in self.kinds for result in kind.results(self.kernel, end))


def header_of(plan: Plan, end: int, seed: int, conditions: Conditions) -> dict[str, Any]:
    """The first line of a run's journal, which identifies the run."""
    header: dict[str, Any] = {"freshline": __version__, "seed": seed, "end": end, "now": 0, "freshness": None}
    if plan.placed is not None:
        header["placement"] = plan.placed.record()
    return {**header, **conditions.record(), "warehouse": to_record(plan.warehouse)}


def files_of(feed: Feed, seed: int, outages: Sequence[Outage]) -> FeedFiles:
    """The files of a feed, for a seed."""
    arrivals = FeedArrivals(feed, seed)
    return InterruptedFeed(arrivals, outages) if outages else arrivals
