"""Runs a planned warehouse in simulated time, as a what-if."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TextIO

from freshline.kernel.core.journal import Journal
from freshline.kernel.recovery.aus import given_up
from freshline.planning.plan.plan import Plan
from freshline.simulation.classes import RequestRate
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.conditions.crashes import Crash, Crashes
from freshline.simulation.conditions.gaps import Gap, Gaps
from freshline.simulation.conditions.outages import Outage, Outages
from freshline.simulation.job_records import JobRecords
from freshline.simulation.kind import KindResult
from freshline.simulation.kinds import KindResults
from freshline.simulation.simulated_run import SimulatedRun, header_of


@dataclass(frozen=True, slots=True)
class PoolResult:
    """The utilisation of a pool's tracks."""

    name: str
    tracks: int
    busy: float  # tracks busy on average
    # When and why certificates were given up (aus-slack only).
    given_up: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationResult(KindResults):
    """The result of a run. Seed, version and conditions replay it."""

    plan: Plan
    seed: int
    end: int
    outages: Outages
    gaps: Gaps
    slow: Mapping[str, Fraction]  # by table: the factor on its costs
    pools: tuple[PoolResult, ...]
    records: JobRecords | None  # of every job, if kept
    failures: Mapping[str, Fraction]  # by table: the chance that a job fails
    crashes: Crashes  # of the runner
    node_crashes: Mapping[str, Crashes]  # by node
    seen: tuple[KindResult, ...]  # of all kinds

    @property
    def holds(self) -> bool:
        return all(result.holds for result in self.seen)

    @property
    def has_faults(self) -> bool:
        """Whether it was simulated under conditions that the plan does not know."""
        return bool(
            self.outages or self.gaps or self.slow or self.failures or self.crashes or self.node_crashes
        )


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
    requests: Mapping[str, RequestRate] | None = None,
    node_crashes: Mapping[str, Sequence[Crash]] | None = None,
    keep_records: bool = False,
    journal_to: TextIO | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Runs a planned warehouse from instant 0 up to `end`.

    `outages` has by feed when it is down: the files of that time arrive at its end. `gaps` has by feed when
    it delivers on time, but no rows. `slow` has by table, query or class a factor on its costs, which the
    plan does not know. `failures` has by table the chance that a job fails at its end. `crashes` has when the
    runner is down, `node_crashes` by node when it is, `requests` the request rates of classes. Memory does
    not grow with the length of the run, except for the records of jobs (40 bytes each), if kept.
    """
    conditions = checked(plan.warehouse, end, outages, gaps, slow, failures, crashes, requests, node_crashes)
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
        records,
        conditions.failures,
        conditions.crashes,
        conditions.node_crashes,
        run.results(end),
    )


def _pool_results(run: SimulatedRun, end: int) -> tuple[PoolResult, ...]:
    broken: dict[str, list[tuple[int, str]]] = {}
    for kernel in run.kernels:
        for assembled in kernel.pools:
            broken.setdefault(assembled.name, []).extend(given_up(assembled))
    pools = []
    for pool in run.plan.pools:
        tracks = _tracks_of(run, pool.name)
        busy_us = sum(run.driver.busy_us.get(track, 0) for track in tracks)
        # A pool with isolated clusters appears under other names.
        gave_up = tuple(broken.get(pool.name, ()))
        pools.append(PoolResult(pool.name, pool.tracks, busy_us / end if end else 0.0, gave_up))
    return tuple(pools)


def _tracks_of(run: SimulatedRun, pool: str) -> set[int]:
    """The tracks of a pool, which may be several in the kernel: of clusters, or of queries."""
    return {
        track
        for each in run.kernel.pools
        if each.name == pool or each.name.rpartition("/")[0] == pool
        for track in range(each.tracks_from, each.tracks_from + each.tracks)
    }
