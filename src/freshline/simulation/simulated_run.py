"""One simulated run of a plan, with all its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from freshline import __version__
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.serial import to_record
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.node_kernels import NodeKernels
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.node_events import NodeStarted, NodeStopped
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
    """A run from instant 0 on with empty tables; each crash of the runner starts a new kernel.

    If a node is to crash, each node has a kernel of its own, as in a live run.
    """

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
        self.kernels = [self._assembled(0, None)]
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
        for at, _, turn in sorted(self._turns(), key=lambda each: each[:2]):
            self.driver.advance(at - 1, progress)
            turn()
        self.driver.run(end, progress)

    def _turns(self) -> Iterator[tuple[int, bool, Callable[[], None]]]:
        """When the runner or a node crashes, or a node starts again (true), and what is done then."""
        for start, back_at in self.conditions.crashes:
            yield start, False, partial(self._crashes, start, back_at)
        for node, spans in self.conditions.node_crashes.items():
            for start, back_at in spans:
                yield start, False, partial(self._node_stops, start, node)
                yield back_at, True, partial(self._node_starts, back_at, node)

    def _crashes(self, start: int, back_at: int) -> None:
        self.kernels.append(crash(self.driver, self.kinds, start, back_at, self._assembled))

    def _node_stops(self, at: int, node: str) -> None:
        lost = self._of_node(node)
        self.kernels.insert(0, lost)
        self.driver.lose(at, {task.name for task in lost.tasks})
        self.driver.tell(at, NodeStopped(node))

    def _node_starts(self, at: int, node: str) -> None:
        self.driver.tell(at, NodeStarted(node))
        self.driver.advance(at)
        for kind in self.kinds:
            kind.node_began(self.kernel, {task.name for task in self._of_node(node).tasks})

    def _of_node(self, node: str) -> Kernel:
        assert isinstance(self.kernel, NodeKernels), "no node was to crash"
        return self.kernel.of(node)

    def _assembled(self, now: int, freshness: Mapping[str, int | None] | None) -> Kernel:
        if self.conditions.node_crashes:
            return NodeKernels(self.plan, now, freshness)
        return assemble(self.plan, now, freshness, live=False)

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
