"""Paper 001, figure 9: how late tables recover after an outage, and the effect on others."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import track

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool, Provisioning
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.simulation.lag import lag_points
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.tables import TableResult
from freshline_lab.experiments.outages.outage_page import write_page

TRACKS = 2
PERIODS = {f"V{number}": 300 if number <= 7 else 900 for number in range(1, 15)}  # seconds
LATE = ("V1", "V2", "V3", "V4")
HEALTHY = tuple(name for name in PERIODS if name not in LATE)
OUTAGE_S = (5_000, 10_000)
END_S = 30_000

Phases = Literal["uniform", "zero"]
PHASES: tuple[Phases, ...] = ("uniform", "zero")


@dataclass(frozen=True, slots=True)
class OutageRow:
    """A row of the tables."""

    label: str
    name: PolicyName
    provisioning: Provisioning = "worst"
    cluster_factor: int = 10


COMPARED = (
    OutageRow("AUS, average", "aus", "average"),
    OutageRow("AUS, worst", "aus", "worst"),
    OutageRow("PRP, factor 10", "prp", cluster_factor=10),
    OutageRow("PRP, factor 1", "prp", cluster_factor=1),
    OutageRow("EDF", "edf"),
    OutageRow("EDF strict", "edf-strict"),
    OutageRow("AUS-slack, worst", "aus-slack", "worst"),
    OutageRow("AUS-slack, average", "aus-slack", "average"),
)
DRAWN = ("PRP, factor 10", "AUS, average", "AUS-slack, worst", "EDF")


@dataclass(frozen=True, slots=True)
class OutageSimulation:
    """The result of one simulation."""

    recovered_s: dict[str, float | None]  # of each late table; None: not by the end
    lag_periods: dict[str, float]  # of each healthy table: the worst
    above_s: dict[str, float]  # of each healthy table: the longest time with a lag above its period
    behind_until_s: dict[str, float]  # of each healthy table that was behind: when it last was


def phases_s(seed: int) -> dict[str, int]:
    """The uniform phases of a seed: whole seconds in [0, p)."""
    rng = random.Random(f"phases:{seed}")
    return {name: rng.randrange(period) for name, period in PERIODS.items()}


def warehouse(policy: OutageRow, phases: Phases, seed: int) -> Warehouse:
    """Section VII's tables: a feed of files for each, S = 0.01·p, R = 0.1, b = 0.2, no jitter."""
    phase_s = phases_s(seed) if phases == "uniform" else dict.fromkeys(PERIODS, 0)
    feeds: dict[str, Feed] = {}
    tables: dict[str, Table] = {}
    for name, period in PERIODS.items():
        period_us = period * SECOND
        feeds[name] = Feed(name, "files", period_us, phase_us=phase_s[name] * SECOND)
        cost = Cost(period_us // 100, Fraction(1, 10), Fraction(1, 5))
        tables[name] = Table(name, "updates", period_us, feed=name, cost=cost)
    factor = Fraction(policy.cluster_factor)
    pool = Pool("updates", TRACKS, policy.name, factor, policy.provisioning)
    names = tuple(tables)
    return Warehouse("paper 001", ".", {"updates": pool}, feeds, tables, names, frozenset(names))


def run_with_outage(policy: OutageRow, phases: Phases, seed: int) -> SimulationResult:
    outage = (OUTAGE_S[0] * SECOND, OUTAGE_S[1] * SECOND)
    return simulate(
        make_plan(warehouse(policy, phases, seed)),
        END_S * SECOND,
        seed,
        outages={name: [outage] for name in LATE},
        keep_records=True,
    )


def run_case(policy: OutageRow, phases: Phases, seed: int) -> OutageSimulation:
    result = run_with_outage(policy, phases, seed)
    tables = {table.plan.name: table for table in result.tables}
    recovered_us = {name: tables[name].recovered_at_us for name in LATE}
    return OutageSimulation(
        recovered_s={name: None if at is None else at / SECOND for name, at in recovered_us.items()},
        lag_periods={name: tables[name].lag_max_us / tables[name].plan.period_us for name in HEALTHY},
        above_s={name: longest_above_us(result, name) / SECOND for name in HEALTHY},
        behind_until_s={
            name: until for name in HEALTHY if (until := _behind_until_s(tables[name])) is not None
        },
    )


def _behind_until_s(table: TableResult) -> float | None:
    if table.recovered_at_us is not None:
        return table.recovered_at_us / SECOND
    return float(END_S) if table.state in ("BEHIND", "LATE") else None


def longest_above_us(result: SimulationResult, name: str) -> int:
    """The longest time without a break that a table's lag was above its period."""
    (table,) = (table for table in result.tables if table.plan.name == name)
    if table.lag_max_us <= table.plan.period_us:
        return 0
    longest = 0
    since: int | None = None
    for at, lag_us in lag_points(result, name):
        if lag_us <= table.plan.period_us:
            since = None
        elif since is None:
            since = at
        else:
            longest = max(longest, at - since)
    return longest


def summary(policy: OutageRow, phases: Phases, runs: Sequence[OutageSimulation]) -> dict[str, Any]:
    """The summary over all seeds."""
    ends = [_end_of_recovery(run) for run in runs]
    known = [end for end in ends if end is not None]
    healthy = {
        name: {
            "lag_periods_max": max(run.lag_periods[name] for run in runs),
            "above_s_max": max(run.above_s[name] for run in runs),
            "behind_until_s": max(run.behind_until_s.get(name, 0.0) for run in runs) or None,
            "seeds_above_one": sum(run.lag_periods[name] > 1 for run in runs),
            "seeds_above_two": sum(run.lag_periods[name] > 2 for run in runs),
        }
        for name in HEALTHY
    }
    own_s = [taken for run in runs for taken in one_after_the_other_s(run)]
    return {
        "policy": policy.label,
        "phases": phases,
        "ended_s": {"mean": sum(known) / len(known), "min": min(known), "max": max(known)} if known else None,
        "seeds_not_ended": len(ends) - len(known),
        "seeds_above_one": sum(max(run.lag_periods.values()) > 1 for run in runs),
        "seeds_above_two": sum(max(run.lag_periods.values()) > 2 for run in runs),
        "healthy": healthy,
        "own_s": {"mean": sum(own_s) / len(own_s), "max": max(own_s)} if own_s else None,
    }


def _end_of_recovery(run: OutageSimulation) -> float | None:
    """When the last late table had recovered."""
    times = [at for at in run.recovered_s.values() if at is not None]
    return max(times) if len(times) == len(LATE) else None


def one_after_the_other_s(run: OutageSimulation) -> list[float]:
    """How long each late table took since the previous one's recovery, or since the outage's end."""
    times = sorted(at for at in run.recovered_s.values() if at is not None)
    if len(times) < len(LATE):
        return []
    return [at - before for before, at in zip([float(OUTAGE_S[1]), *times], times, strict=False)]


def promises(plan: Plan, label: str) -> dict[str, Any]:
    """The proven figures of a table of each period: x of Theorem 1, A(V), p/p^[r], and Theorem 4's time."""
    of_period = {table.period_us: table for table in plan.tables}
    record: dict[str, Any] = {"policy": label}
    for period_us, table in of_period.items():
        assert table.response_bound_us is not None
        assert table.staleness_bound_us is not None
        assert table.provisioned_us is not None
        assert table.recovery_period_us is not None
        promised_us = table.recovery_time_us((OUTAGE_S[1] - OUTAGE_S[0]) * SECOND)
        record[str(period_us // SECOND)] = {
            "x_s": (table.response_bound_us - period_us - table.provisioned_us) / SECOND,
            "staleness_bound_s": table.staleness_bound_us / SECOND,
            "periods_in_one": period_us / table.recovery_period_us,
            "recovery_time_s": None if promised_us is None else promised_us / SECOND,
        }
    return record


def run(out: Path, *, seeds: int, quiet: bool = False) -> dict[str, Any]:
    """Runs everything on all cores and writes results.json, figure.png and page.md into a folder."""
    screen = Console(stderr=True, quiet=quiet)
    cases = [(policy, phases) for policy in COMPARED for phases in PHASES]
    screen.print(f"{len(cases) * seeds} simulations of {END_S:,} s", highlight=False)
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        futures = [[executor.submit(run_case, *case, seed) for seed in range(seeds)] for case in cases]
        waiting = track(futures, "simulating", console=screen, disable=not screen.is_terminal)
        runs = [[future.result() for future in of_case] for of_case in waiting]
    record = {
        "seeds": seeds,
        "promises": [
            promises(make_plan(warehouse(policy, "uniform", 0)), policy.label)
            for policy in COMPARED
            if policy.name == "aus"
        ],
        "outcomes": [summary(*case, of_case) for case, of_case in zip(cases, runs, strict=True)],
    }
    by_label = {policy.label: policy for policy in COMPARED}
    drawn = {label: run_with_outage(by_label[label], "uniform", 0) for label in DRAWN}
    page = write_page(record, drawn, out)
    if not quiet:
        print(page.read_text(encoding="utf-8"))
        screen.print(f"Written: {out}/page.md, figure.png, results.json", highlight=False, soft_wrap=True)
    return record
