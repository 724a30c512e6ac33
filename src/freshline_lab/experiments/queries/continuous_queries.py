"""Paper 000, section 4: continuous queries with deadlines under overload, figures 8 to 12."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from rich.console import Console

from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Pool, Rescheduling
from freshline.definitions.sections.queries import Query
from freshline.planning.analysis.operators import operator_cost
from freshline.simulation.iterations import IterationOutcome
from freshline.simulation.streams import TupleStream
from freshline_lab.campaigns.queries.shedding import RULES, ShedCheck, shed_set
from freshline_lab.experiments.queries.continuous_page import write_page
from freshline_lab.experiments.queries.query_workloads import (
    CYCLE_US,
    QueryWorkload,
    Trace,
    randomly,
    read_trace,
    steady,
    step,
)
from freshline_lab.experiments.queries.table_2 import queries
from freshline_lab.runs.query_run import QueryRunAnswers, simulate_queries

QUERIES: Final = 10
QUERY_LOADS: Final = range(4, 21, 2)
RUNS, RUNS_QUICK = 20, 5
SETS, SETS_QUICK = 10_000, 1_000
BEST_SHARE: Final = 20  # the optimum takes long: it is computed for the first 1/20 of the sets
THRESHOLD: Final = Fraction(200_000)
# Figures have a point every half second.
_SHOWN_EVERY_US: Final = SECOND // 2

_POOL: Final = "queries"
POOLS: Final = {
    "rm": Pool(_POOL, 1, "rm", preemptive=True),
    "hpf": Pool(_POOL, 1, "rm"),
    "lrm-paper": Pool(_POOL, 1, "lrm-paper"),
    "lrm": Pool(_POOL, 1, "lrm"),
}
SHEDDING: Final = ("lrm-paper", "lrm")
RESCHEDULINGS: Final[tuple[Rescheduling, ...]] = ("optimistic", "pessimistic", "permissive")

Streams = Mapping[str, TupleStream]


@dataclass(frozen=True, slots=True)
class QueryCase:
    """A line of a figure: one policy, in all runs of a workload."""

    policy: str
    rescheduling: Rescheduling
    queries: int
    workload: QueryWorkload


@dataclass(frozen=True, slots=True)
class QueryMeasures:
    """Measures over the iterations due by an instant."""

    miss_rate: float
    completion_rate: float
    total_error: float
    error_share: float


def pool(policy: str, rescheduling: Rescheduling) -> Pool:
    made = POOLS[policy]
    if policy not in SHEDDING:
        return made
    threshold = THRESHOLD if rescheduling == "permissive" else None
    return Pool(made.name, 1, made.policy, rescheduling=rescheduling, threshold=threshold)


def run_case(case: QueryCase) -> dict[str, Any]:
    """The results of one policy: means over the runs of a workload, at the end and over time."""
    asked = queries(case.queries, _POOL)
    made = pool(case.policy, case.rescheduling)
    end = case.workload.end_us
    instants = range(_SHOWN_EVERY_US, end + 1, _SHOWN_EVERY_US)
    answers = [simulate_queries(asked, streams, made, end) for streams in case.workload.runs]
    in_the_end = [measured(run.outcomes, end) for run in answers]
    sheds = case.policy in SHEDDING
    return {
        "policy": case.policy,
        "rescheduling": case.rescheduling if sheds else None,
        "miss_rate": fmean(each.miss_rate for each in in_the_end),
        "miss_rate_worst": max(each.miss_rate for each in in_the_end),
        "completion_rate": fmean(each.completion_rate for each in in_the_end),
        "total_error": fmean(each.total_error for each in in_the_end),
        "error_share": fmean(each.error_share for each in in_the_end),
        "reschedules": fmean(run.reschedules for run in answers) if sheds else 0,
        "over_time": [_at(instant, answers) for instant in instants if instant >= SECOND],
    }


def _at(instant: int, answers: Sequence[QueryRunAnswers]) -> dict[str, float]:
    found = [measured(run.outcomes, instant) for run in answers]
    return {
        "t": instant / SECOND,
        "miss_rate": fmean(each.miss_rate for each in found),
        "completion_rate": fmean(each.completion_rate for each in found),
        "total_error": fmean(each.total_error for each in found),
    }


def measured(outcomes: Iterable[IterationOutcome], instant: int) -> QueryMeasures:
    """The measures over the iterations due by an instant, of which there is at least one."""
    due = [outcome for outcome in outcomes if outcome.deadline <= instant]
    finished = [outcome for outcome in due if outcome.finished is not None and outcome.finished <= instant]
    lost = sum((outcome.error for outcome in due), start=Fraction(0))
    whole = sum((outcome.worth * outcome.tuples for outcome in due), start=Fraction(0))
    return QueryMeasures(
        sum(not outcome.met for outcome in due) / len(due),
        len(finished) / len(due),
        float(lost),
        float(lost / whole) if whole else 0.0,
    )


def demand(asked: Sequence[Query], workload: QueryWorkload) -> float:
    """The tracks that all queries would take without shedding, on average over the runs."""

    def of_run(streams: Streams) -> float:
        tuples = {name: stream.tuples(0, workload.end_us) for name, stream in streams.items()}
        costs = [operator_cost(query.operators, tuples).cost_us for query in asked if query.operators]
        return sum(costs) / workload.end_us

    return fmean(of_run(streams) for streams in workload.runs)


def workloads(runs: int, seed: int, trace: Trace | None) -> list[QueryWorkload]:
    found = [steady("cycle", CYCLE_US), steady(), step(), randomly(runs, seed)]
    return found if trace is None else [*found, trace.workload(runs)]


def run(
    into: Path,
    *,
    quick: bool = False,
    trace: Path | None = None,
    seed: int = 0,
    quiet: bool = False,
    live: Callable[[], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Runs everything on all cores and writes results.json, the figures and page.md into a folder.

    `live` runs the queries on Spark, after all simulations.
    """
    arrivals = None if trace is None else read_trace(trace)
    of_time = workloads(RUNS_QUICK if quick else RUNS, seed, arrivals)
    sets = SETS_QUICK if quick else SETS
    screen = Console(stderr=True, quiet=quiet)
    named = ", ".join(workload.name for workload in of_time)
    screen.print(f"{named}; {QUERY_LOADS[0]} to {QUERY_LOADS[-1]} queries; {sets:,} sets", highlight=False)
    asked = queries(QUERIES, _POOL)
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        with_best = [place < sets // BEST_SHARE for place in range(sets)]
        shed = executor.map(shed_set, range(seed * sets, (seed + 1) * sets), with_best, chunksize=50)
        compared = partial(_compared, lambda cases: list(executor.map(run_case, cases)))
        record: dict[str, Any] = {
            "seed": seed,
            "trace": None if arrivals is None else arrivals.record(),
            "workloads": [
                {
                    "name": workload.name,
                    "demand": demand(asked, workload),
                    "runs": len(workload.runs),
                    "policies": compared(workload, QUERIES),
                }
                for workload in of_time
            ],
            "rescheduling": _reschedulings(lambda cases: list(executor.map(run_case, cases)), of_time[1:]),
            "query_load": [
                {
                    "queries": count,
                    "demand": demand(queries(count, _POOL), steady()),
                    "policies": compared(steady(), count),
                }
                for count in QUERY_LOADS
            ],
            "shedding": shedding(list(shed)),
        }
    if live is not None:
        screen.print("live on Spark", highlight=False)
        record["live"] = live()
    page = write_page(record, into)
    if not quiet:
        print(page.read_text(encoding="utf-8"))
        screen.print(f"Written: {into}/page.md, two figures, results.json", highlight=False, soft_wrap=True)
    return record


Run = Callable[[list[QueryCase]], list[dict[str, Any]]]


def _compared(run_all: Run, workload: QueryWorkload, count: int) -> list[dict[str, Any]]:
    return run_all([QueryCase(policy, "optimistic", count, workload) for policy in POOLS])


def _reschedulings(run_all: Run, of_time: Sequence[QueryWorkload]) -> list[dict[str, Any]]:
    cases = [
        QueryCase(policy, rescheduling, QUERIES, workload)
        for workload in of_time
        for policy in SHEDDING
        for rescheduling in RESCHEDULINGS
    ]
    return [
        {"workload": case.workload.name, **found} for case, found in zip(cases, run_all(cases), strict=True)
    ]


def shedding(found: Sequence[ShedCheck]) -> dict[str, Any]:
    """The results of random overloaded sets. `best` was computed for some of them."""
    with_best = [each for each in found if "best" in each.error]
    by_rule: dict[str, Sequence[ShedCheck]] = {**dict.fromkeys(RULES, found), "best": with_best}
    over_paper = {rule: [each.over_paper(rule) for each in sets] for rule, sets in by_rule.items()}
    over_best = [each.error["least-error"] / each.error["best"] for each in with_best]
    return {
        "sets": len(found),
        "sets_with_best": len(with_best),
        "as_printed": sum(each.as_printed for each in found),
        "schedulable_after": {
            rule: sum(each.schedulable[rule] for each in sets) for rule, sets in by_rule.items()
        },
        "least_error_over_best": {"mean": fmean(over_best), "worst": max(over_best)},
        "error_over_paper": {
            rule: {"mean": fmean(ratios), "worst": max(ratios)} for rule, ratios in over_paper.items()
        },
    }
