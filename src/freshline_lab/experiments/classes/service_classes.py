"""Paper 003, section 5: service classes under varying load, estimation errors, and steps of load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console

from freshline_lab.experiments.classes.service_measures import measures, step, transient
from freshline_lab.experiments.classes.service_page import write_page
from freshline_lab.experiments.classes.service_runs import ClassCourse, simulate_classes
from freshline_lab.experiments.classes.service_workload import Loads

ALGORITHMS: Final = ("rds-edf", "rds-hef", "rds-quota", "admit-all")
LOADS: Final = (40, 80, 100, 120, 140, 180, 200, 240, 300, 500, 700)
LOADS_QUICK: Final = (40, 100, 200, 300, 700)
ESTIMATION_ERRORS: Final = (-0.4, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0, 3.0)
ESTIMATED_AT: Final = 300
TRANSIENT_AT: Final = 200
STEP: Final[Loads] = ((0, 50), (200, 300), (400, 50))
SECONDS: Final = 600
SECONDS_QUICK: Final = 150
RUNS: Final = 10
RUNS_QUICK: Final = 2


class ClassCase(NamedTuple):
    """A case, run several times, with a seed for each run."""

    algorithm: str
    loads: Loads
    error: float = 0.0


class _Job(NamedTuple):
    case: ClassCase
    seed: int
    seconds: int


def _simulate(job: _Job) -> ClassCourse:
    case = job.case
    return simulate_classes(case.algorithm, case.loads, job.seed, job.seconds, case.error)


def run(
    into: Path, *, quick: bool = False, runs: int | None = None, seed: int = 0, quiet: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Runs everything on all cores and writes results.json, figures and page.md into a folder.

    Returns the results, and the unmet requirements.
    """
    number = runs or (RUNS_QUICK if quick else RUNS)
    seconds = SECONDS_QUICK if quick else SECONDS
    at_loads = [
        ClassCase(name, ((0, load),)) for load in (LOADS_QUICK if quick else LOADS) for name in ALGORITHMS
    ]
    # Admit-all uses no estimates, so it is left out here.
    estimated = [
        ClassCase(name, ((0, ESTIMATED_AT),), error)
        for error in (() if quick else ESTIMATION_ERRORS)
        for name in ALGORITHMS
        if name != "admit-all"
    ]
    steps = [] if quick else [ClassCase(name, STEP) for name in ALGORITHMS]
    screen = Console(stderr=True, quiet=quiet)
    cases = [*at_loads, *estimated, *steps]
    screen.print(f"{len(cases)} cases, {number} runs of {seconds} s each", highlight=False)
    seeds = range(seed * 1_000, seed * 1_000 + number)
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        jobs = [_Job(case, each, seconds) for case in cases for each in seeds]
        found = _by_case(cases, executor.map(_simulate, jobs), number, screen.print)
        record = _record(at_loads, estimated, steps, found)
    page, unmet = write_page(record, into, seed, number, seconds, quick)
    if not quiet:
        print(page.read_text(encoding="utf-8"))
        screen.print(f"Written: {into}/page.md, figures, results.json", highlight=False, soft_wrap=True)
    return record, unmet


def _by_case(
    cases: Sequence[ClassCase], courses: Iterator[ClassCourse], runs: int, say: Callable[[str], None]
) -> Iterator[tuple[ClassCase, list[ClassCourse]]]:
    for place, case in enumerate(cases, start=1):
        yield case, [next(courses) for _ in range(runs)]
        if place % 4 == 0:
            say(f"{place} of {len(cases)} cases")


def _record(
    at_loads: Sequence[ClassCase],
    estimated: Sequence[ClassCase],
    steps: Sequence[ClassCase],
    found: Iterator[tuple[ClassCase, list[ClassCourse]]],
) -> dict[str, Any]:
    record: dict[str, Any] = {"loads": [], "esterr": [], "transient": [], "step": []}
    for _ in at_loads:
        case, courses = next(found)
        load = case.loads[0][1]
        record["loads"].append({"load": load, "algorithm": case.algorithm, **measures(courses)})
        if load == TRANSIENT_AT:
            record["transient"].append({"algorithm": case.algorithm, "classes": transient(courses)})
    for _ in estimated:
        case, courses = next(found)
        record["esterr"].append({"esterr": case.error, "algorithm": case.algorithm, **measures(courses)})
    for _ in steps:
        case, courses = next(found)
        from_s = int(STEP[1][0])
        record["step"].append({"algorithm": case.algorithm, "classes": step(courses, from_s)})
    return record
