"""Paper 004, section 5: observed staleness and the pessimism of the bounds, on 4 to 32 tracks."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import track

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.np_edf import schedulable
from freshline.planning.analysis.np_gedf import NpGedf
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import ClusterPlan, Plan
from freshline.simulation.simulate import SimulationResult, simulate
from freshline_lab.experiments.staleness.staleness_page import write_page

TRACKS = (4, 8, 16, 24, 32)
EVENTS = 2_000_000  # releases and completions
EVENTS_QUICK = EVENTS // 20
VARIABILITY = Fraction(1, 5)
# The four classes: their period and the share of the fill level that they may take.
CLASSES = (
    (300, Fraction(1, 10)),
    (900, Fraction(1, 10)),
    (3_600, Fraction(1, 10)),
    (28_800, Fraction(7, 10)),
)
# A task's utilisation is 0.11 on average and 0.132 at worst; the paper does not say which one is used.
FILLS = (Fraction(11, 100), Fraction(132, 1000))

Phases = Literal["zero", "uniform"]
PHASES: tuple[Phases, ...] = ("zero", "uniform")


@dataclass(frozen=True, slots=True)
class StalenessRow:
    """A line of the figure."""

    label: str
    name: PolicyName
    cluster_factor: int = 10


COMPARED = (
    StalenessRow("RM", "rm"),
    StalenessRow("PRP, factor 10", "prp", 10),
    StalenessRow("PRP, factor 1", "prp", 1),
    StalenessRow("NP-GEDF", "edf"),
    StalenessRow("C-NP-GEDF", "clustered-edf"),
)
CONTENTION_FREE = StalenessRow("a track for each table", "edf")


@dataclass(frozen=True, slots=True)
class StalenessCase:
    """One simulation."""

    fill: Fraction
    phases: Phases
    tracks: int
    policy: StalenessRow
    events: int
    seed: int


@dataclass(frozen=True, slots=True)
class StalenessOutcome:
    """The result of a case. MWS is the sum of max staleness over period, (11)."""

    fill: float
    phases: Phases
    tracks: int
    policy: str
    tables: int
    clusters: int | None
    events: int  # releases and completions: at least the requested number
    jobs: int
    observed_mws: float
    paper_bound_mws: float | None  # with the paper's tardiness bounds
    bound_mws: float | None  # with ours


def tasks_per_class(tracks: int, fill: Fraction) -> list[int]:
    """How many tasks of each class fit under U_f = m/(1 + b)."""
    level = tracks / (1 + VARIABILITY)
    return [int(share * level / fill) for _, share in CLASSES]


def warehouse(case: StalenessCase) -> Warehouse:
    """The synthetic set: base tables on continuous feeds, S = 0.01·p, R = 0.1, b = 0.2."""
    rng = random.Random(f"phases:{case.seed}")
    feeds: dict[str, Feed] = {}
    tables: dict[str, Table] = {}
    for (period, _), count in zip(CLASSES, tasks_per_class(case.tracks, case.fill), strict=True):
        period_us = period * SECOND
        for number in range(count):
            name = f"v{period}_{number}"
            phase_us = rng.randrange(period_us) if case.phases == "uniform" else 0
            feeds[name] = Feed(name, "continuous", period_us)
            cost = Cost(period_us // 100, Fraction(1, 10), VARIABILITY)
            tables[name] = Table(name, "updates", period_us, feed=name, phase_us=phase_us, cost=cost)
    tracks = len(tables) if case.policy == CONTENTION_FREE else case.tracks
    pool = Pool("updates", tracks, case.policy.name, Fraction(case.policy.cluster_factor))
    return Warehouse("paper 004", ".", {"updates": pool}, feeds, tables, tuple(tables))


def run_case(case: StalenessCase) -> StalenessOutcome:
    """Plans and simulates one case, long enough for its number of events."""
    plan = make_plan(warehouse(case))
    result = _long_enough(plan, case)
    assert not any(table.exceeded_bound for table in result.tables), f"a bound does not hold: {case}"
    clusters = plan.pools[0].clusters
    return StalenessOutcome(
        fill=float(case.fill),
        phases=case.phases,
        tracks=case.tracks,
        policy=case.policy.label,
        tables=len(plan.tables),
        clusters=None if clusters is None else len(clusters),
        events=scheduling_events(result),
        jobs=sum(table.jobs for table in result.tables),
        observed_mws=sum(table.staleness_max_us / table.plan.period_us for table in result.tables),
        paper_bound_mws=_paper_bound_mws(plan),
        bound_mws=_bound_mws(plan),
    )


def _long_enough(plan: Plan, case: StalenessCase) -> SimulationResult:
    """A run with at least the case's number of events.

    Its length is known only afterwards: under PRP a start absorbs releases, so there are fewer completions.
    """
    jobs_a_us = sum(1 / table.period_us for table in plan.tables)
    # A phase may cost a table one release, and its last job may be unfinished.
    end = int((case.events / 2 + len(plan.tables)) / jobs_a_us)
    while (events := scheduling_events(result := simulate(plan, end, case.seed))) < case.events:
        end = int(end * 1.005 * case.events / events) + 1
    return result


def scheduling_events(result: SimulationResult) -> int:
    """The releases and completions of a run of periodic tables."""
    tables = result.plan.warehouse.tables.values()
    releases = sum(
        (result.end - table.phase_us) // table.period_us + 1
        for table in tables
        if table.phase_us <= result.end
    )
    return releases + sum(table.jobs for table in result.tables)


def _bound_mws(plan: Plan) -> float | None:
    bounds = [table.staleness_bound_us for table in plan.tables]
    weighted = [
        bound / table.period_us for bound, table in zip(bounds, plan.tables, strict=True) if bound is not None
    ]
    return sum(weighted) if len(weighted) == len(bounds) else None


def _paper_bound_mws(plan: Plan) -> float | None:
    """The same with section 4's tardiness: Theorem 2, and on one track 0 or e + max e − min e."""
    pool = plan.pools[0]
    if not POLICIES[pool.policy].proven:
        return None
    weighted = 0.0
    tables = plan.tables_by_name
    for cluster in pool.clusters or (ClusterPlan(pool.tables, pool.tracks),):
        members = [tables[name] for name in cluster.tables]
        costs, periods = [table.cost_us for table in members], [table.period_us for table in members]
        x = NpGedf(costs, periods).x(cluster.tracks)
        assert x is not None
        punctual = len(members) <= cluster.tracks or (cluster.tracks == 1 and schedulable(costs, periods))
        for table in members:
            tardiness_us = 0 if punctual else table.cost_us + x
            phase_us = plan.warehouse.tables[table.name].phase_us
            bound_us = table.period_us + tardiness_us + max(table.period_us, phase_us)
            weighted += float(bound_us / Fraction(table.period_us))
    return weighted


def cases(events: int, seed: int) -> Iterator[StalenessCase]:
    for fill in FILLS:
        for phases in PHASES:
            for tracks in TRACKS:
                for policy in (*COMPARED, CONTENTION_FREE):
                    yield StalenessCase(fill, phases, tracks, policy, events, seed)


def run(out: Path, *, events: int = EVENTS, seed: int = 0, quiet: bool = False) -> dict[str, Any]:
    """Runs everything on all cores and writes results.json, figure.png and page.md into a folder."""
    todo = list(cases(events, seed))
    screen = Console(stderr=True, quiet=quiet)
    screen.print(
        f"{len(todo)} simulations of at least {events:,} scheduling events, seed {seed}", highlight=False
    )
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        futures = {executor.submit(run_case, case): number for number, case in enumerate(todo)}
        done = {
            futures[future]: future.result()
            for future in track(
                as_completed(futures),
                "simulating",
                total=len(todo),
                console=screen,
                disable=not screen.is_terminal,
            )
        }
    outcomes = [done[number] for number in range(len(todo))]
    record = {"seed": seed, "events": events, "outcomes": [asdict(outcome) for outcome in outcomes]}
    page = write_page(record, out)
    if not quiet:
        print(page.read_text(encoding="utf-8"))
        screen.print(f"Written: {out}/page.md, figure.png, results.json", highlight=False, soft_wrap=True)
    return record
