"""A what-if: run a planned warehouse in simulated time and see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TextIO

from freshline import __version__
from freshline.assembly.assemble import assemble
from freshline.costs.draws import CostDraws
from freshline.definitions.feeds import Feed
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.plan.plan import Plan, TablePlan
from freshline.recovery.aus import given_up
from freshline.recovery.modes import is_recovering, recovery_rule
from freshline.recovery.terms import Recovery
from freshline.simulation.arrivals import Arrivals
from freshline.simulation.driver import Driver, Files
from freshline.simulation.gaps import Gap, Gaps, checked_gaps, gaps_of_sources
from freshline.simulation.observation import History, Observation
from freshline.simulation.outages import Interrupted, Outage, Outages, checked_outages, downstream
from freshline.simulation.slow import Slowed, checked_factors
from freshline.simulation.updates import UpdateCosts, Updates
from freshline.tables.state import TableState, exceeds, table_state
from freshline.tables.task import TableTask, tables_of
from freshline.tables.update import Update


@dataclass(frozen=True, slots=True)
class TableResult:
    """What a run showed of one table, beside what was proven."""

    plan: TablePlan
    staleness_max_us: int
    lag_max_us: int
    jobs: int  # finished
    misses: int  # finished, or unfinished at the end, after the deadline
    state: TableState  # at the end
    # When its lag fell to a period or less for the last time since the first outage began. None where it was
    # never above since then, or is so at the end.
    recovered_at_us: int | None
    # Its feeds delivered, no table was slow, and its bound is more than expected: it must have held.
    as_assumed: bool
    recovery: Recovery | None = None  # the last one, of a table that its policy gives a recovery mode

    @property
    def exceeded_target(self) -> bool:
        return exceeds(self.staleness_max_us, self.plan.target_lag_us)

    @property
    def exceeded_bound(self) -> bool:
        """Never true where all was as assumed: it would be a flaw of the analysis or of the kernel."""
        return exceeds(self.staleness_max_us, self.plan.staleness_bound_us)


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
    """What a run showed. Seed, outages, gaps, slow tables and version replay it."""

    plan: Plan
    seed: int
    end: int
    outages: Outages
    gaps: Gaps
    slow: Mapping[str, Fraction]  # by table: what its costs were multiplied with
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
    outages: Mapping[str, Sequence[Outage]] | None = None,
    gaps: Mapping[str, Sequence[Gap]] | None = None,
    slow: Mapping[str, Fraction] | None = None,
    keep_history: bool = False,
    log: TextIO | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Runs a planned warehouse from instant 0 up to `end`.

    `outages` says by feed from when to when it is down: the files of that time come at its end; `gaps` when
    it delivers on time, but no rows. `slow` says by table what its costs are multiplied with, of which the
    plan knows nothing. Memory does not grow with the length of the run, except for the history (40 bytes a
    job), if asked for.
    """
    warehouse = plan.warehouse
    down = checked_outages(warehouse, outages or {})
    quiet = checked_gaps(warehouse, gaps or {})
    factors = checked_factors(warehouse, slow or {})
    kernel = assemble(plan)
    used = {table.feed for table in warehouse.tables.values()}
    files = {
        name: files_of(feed, seed, down.get(name, ()))
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files" and name in used
    }
    history = History() if keep_history else None
    journal = None if log is None else Journal(log, _header(warehouse, end, seed, down, quiet, factors))
    without_rows = gaps_of_sources(warehouse, quiet) if quiet else None
    updates = Updates(_costs(warehouse, seed, factors), history, without_rows)
    driver = Driver(kernel, {Update: updates}, files, journal)
    driver.run(end, progress)
    if history is not None:
        history.ended(kernel)
    pools = _pool_results(plan, kernel, driver.busy_us, end)
    tables = _table_results(plan, kernel, updates.observation, end, down, factors)
    return SimulationResult(plan, seed, end, down, quiet, factors, pools, tables, history)


def files_of(feed: Feed, seed: int, outages: Sequence[Outage]) -> Files:
    """The files of a feed, for a seed."""
    arrivals = Arrivals(feed, seed)
    return Interrupted(arrivals, outages) if outages else arrivals


def _costs(warehouse: Warehouse, seed: int, slow: Mapping[str, Fraction]) -> dict[str, UpdateCosts]:
    costs: dict[str, UpdateCosts] = {}
    for name, table in warehouse.tables.items():
        assert table.cost is not None, "a plan has all costs"
        draws = CostDraws(table.cost, seed, name)
        costs[name] = Slowed(draws, slow[name]) if name in slow else draws
    return costs


def _header(
    warehouse: Warehouse, end: int, seed: int, outages: Outages, gaps: Gaps, slow: Mapping[str, Fraction]
) -> dict[str, Any]:
    """The first line of a log: what run this was."""
    header: dict[str, Any] = {"freshline": __version__, "seed": seed, "end": end, "now": 0, "freshness": None}
    if outages:
        header["outages"] = outages
    if gaps:
        header["gaps"] = gaps
    if slow:
        header["slow"] = {name: str(factor) for name, factor in slow.items()}
    return {**header, "warehouse": to_record(warehouse)}


def _pool_results(plan: Plan, kernel: Kernel, busy_us: Mapping[int, int], end: int) -> tuple[PoolResult, ...]:
    assembled = {pool.name: pool for pool in kernel.pools}
    pools = []
    first_track = 0
    for pool in plan.pools:
        tracks = range(first_track, first_track + pool.tracks)
        pool_us = sum(busy_us.get(track, 0) for track in tracks)
        # A pool that is run in clusters is there by other names.
        broken = tuple(given_up(assembled[pool.name])) if pool.name in assembled else ()
        pools.append(PoolResult(pool.name, pool.tracks, pool_us / end if end else 0.0, broken))
        first_track += pool.tracks
    return tuple(pools)


def _table_results(
    plan: Plan,
    kernel: Kernel,
    observation: Observation,
    end: int,
    outages: Outages,
    slow: Mapping[str, Fraction],
) -> tuple[TableResult, ...]:
    begun = {feed: times for feed, times in outages.items() if times[0][0] <= end}
    first = min((times[0][0] for times in begun.values()), default=end + 1)
    affected = downstream(plan.warehouse, begun)
    silent = {feed for feed, times in begun.items() if any(start <= end < over for start, over in times)}
    slowed = any(factor > 1 for factor in slow.values())
    results = []
    for table, task in zip(plan.tables, tables_of(kernel), strict=True):
        seen = observation.tables[task.name]
        lag_us = task.intake.trailing_edge(end) - task.freshness
        is_silent = plan.warehouse.tables[table.name].feed in silent
        results.append(
            TableResult(
                plan=table,
                staleness_max_us=seen.staleness_max_us,
                lag_max_us=seen.lag_max_us,
                jobs=seen.jobs,
                misses=seen.misses,
                state=_state(table, task, lag_us, is_silent, table.name in affected),
                recovered_at_us=seen.behind_at
                if seen.behind_at >= first and lag_us <= task.period_us
                else None,
                as_assumed=table.name not in affected and not slowed and not table.expected,
                recovery=_recovery(task),
            )
        )
    return tuple(results)


def _recovery(task: TableTask) -> Recovery | None:
    rule = recovery_rule(task)
    return None if rule is None else rule.recovery


def _state(table: TablePlan, task: TableTask, lag_us: int, silent: bool, affected: bool) -> TableState:
    rule = recovery_rule(task)
    return table_state(
        loaded=task.freshness > 0,
        lag_us=lag_us,
        period_us=task.period_us,
        staleness_bound_us=rule.terms.threshold_us if rule else table.staleness_bound_us,
        silent=silent,
        # A policy with a recovery mode says itself which tables recover.
        recovering=affected and rule is None,
        in_recovery=is_recovering(task),
    )
