"""A what-if: run a planned warehouse in simulated time and see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from freshline import __version__
from freshline.costs.draws import CostDraws
from freshline.definitions.serial import to_record
from freshline.kernel.assembly import assemble
from freshline.kernel.journal import Journal
from freshline.plan.plan import Plan, TablePlan
from freshline.simulation.arrivals import Arrivals
from freshline.simulation.driver import Driver
from freshline.simulation.observation import History


@dataclass(frozen=True, slots=True)
class TableResult:
    """What a run showed of one table, beside what was proven."""

    plan: TablePlan
    staleness_us_max: int
    lag_us_max: int
    jobs: int  # finished
    misses: int  # finished, or unfinished at the end, after the deadline

    @property
    def exceeded_target(self) -> bool:
        target_us = self.plan.target_lag_us
        return target_us is not None and self.staleness_us_max > target_us

    @property
    def exceeded_bound(self) -> bool:
        """Never true: it would be a flaw of the analysis or of the kernel."""
        bound_us = self.plan.staleness_bound_us
        return bound_us is not None and self.staleness_us_max > bound_us


@dataclass(frozen=True, slots=True)
class PoolResult:
    """How busy a pool's tracks were."""

    name: str
    tracks: int
    busy: float  # tracks busy on average


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What a run showed. Seed and version replay it."""

    plan: Plan
    seed: int
    end: int
    pools: tuple[PoolResult, ...]
    tables: tuple[TableResult, ...]
    history: History | None

    @property
    def holds(self) -> bool:
        return not any(table.exceeded_target for table in self.tables)


def simulate(
    plan: Plan,
    end: int,
    seed: int = 0,
    *,
    keep_history: bool = False,
    log: TextIO | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Runs a planned warehouse from instant 0 up to `end`.

    Memory does not grow with the length of the run, except for the history (40 bytes a job), if asked for.
    """
    warehouse = plan.warehouse
    kernel = assemble(plan)
    draws = []
    for table in warehouse.tables.values():
        assert table.cost is not None, "a plan has all costs"
        draws.append(CostDraws(table.cost, seed, table.name))
    used = {table.feed for table in warehouse.tables.values()}
    arrivals = {
        name: Arrivals(feed, seed)
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files" and name in used
    }
    history = History() if keep_history else None
    journal = None
    if log is not None:
        header = {"freshline": __version__, "seed": seed, "end": end, "now": 0, "freshness": None}
        journal = Journal(log, {**header, "warehouse": to_record(warehouse)})
    observation = Driver(kernel, draws, arrivals, history, journal).run(end, progress)
    if history is not None:
        history.ended(kernel)
    pools = []
    first_track = 0
    for pool in plan.pools:
        tracks = range(first_track, first_track + pool.tracks)
        busy_us = sum(observation.busy_us.get(track, 0) for track in tracks)
        pools.append(PoolResult(pool.name, pool.tracks, busy_us / end if end else 0.0))
        first_track += pool.tracks
    tables = tuple(
        TableResult(
            plan=table,
            staleness_us_max=observation.staleness_us_max[index],
            lag_us_max=observation.lag_us_max[index],
            jobs=observation.jobs[index],
            misses=observation.misses[index],
        )
        for index, table in enumerate(plan.tables)
    )
    return SimulationResult(plan, seed, end, tuple(pools), tables, history)
