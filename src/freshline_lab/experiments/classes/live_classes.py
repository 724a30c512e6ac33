"""Paper 003's classes live on Spark: the load steps from 50 % to 300 % and back while tables load."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from freshline.base.clock import clock
from freshline.base.duration import SECOND, seconds
from freshline.planning.costs.requests import PartCost
from freshline.sql.from_tables import ReadableTable
from freshline.sql.request_sql import read_request
from freshline.sql.slices import SLICES
from freshline_lab.experiments.classes.class_verdict import in_time, phases_of, requirements, worst_inversion
from freshline_lab.experiments.classes.live_classes_page import write_live_page
from freshline_lab.experiments.classes.request_load import (
    ScheduledRequest,
    SentRequest,
    poisson,
    send_all,
    send_each,
)
from freshline_lab.experiments.classes.service_workload import CLASSES
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.queries.live_queries import apart

if TYPE_CHECKING:
    from freshline.live.loop.messages import JobEnded
    from freshline.live.run.runner import Runner

POLICIES: Final = ("rds-quota", "admit-all")
LOADS: Final = (50.0, 300.0, 50.0)
SECONDS: Final = 75  # of each load
DEADLINE_S: Final = 4.0
NAMES: Final = tuple(f"class{number}" for number in range(1, len(CLASSES) + 1))
REFERENCES: Final = tuple(100 * float(error) for error, _, _ in CLASSES)
_TABLES: Final = ("records", "others")
_FILE_EVERY_S: Final = 5
_ROWS: Final = 2_000  # of a file that arrives during the run
_HISTORY_ROWS: Final = 250_000  # of a file that exists before
_HISTORY_MOST: Final = 32  # such files
_CALIBRATED: Final = 4  # of them, to calibrate how many are needed
_WHOLE_US: Final = 1_600_000  # the wanted cost of reading the whole table, without fixed costs
_SHARES: Final = (0.25, 0.5, 0.75, 1.0)
_QUERIES: Final = (
    "SELECT g, sum(x) AS s, count(*) AS n FROM records GROUP BY g",
    "SELECT avg(x) AS m, count(*) AS n FROM records WHERE x > 0.5",
    "SELECT g, avg(x) AS m, max(x) AS most FROM records WHERE k % 7 < 3 GROUP BY g",
)
_ANSWERS: Final = 4  # of each, before the measurement


def project(policy: str) -> str:
    """The project: tables and classes share one track, and updates go first."""
    classes = [
        f"  {name}: {{error: {error}, data_error_factor: {factor}}}"
        for name, (error, factor, _) in zip(NAMES, CLASSES, strict=True)
    ]
    schema = "ts timestamp, k long, g long, x double"
    feeds = [
        f'  {name}: {{path: landing/{name}, format: parquet, schema: "{schema}", timestamp: ts, '
        f"period: {_FILE_EVERY_S}s}}"
        for name in _TABLES
    ]
    tables = [f"  {name}: {{feed: {name}, cost: {{startup: 1s}}, slices: {{by: k}}}}" for name in _TABLES]
    pools = f"pools: {{main: {{tracks: 1, policy: {policy}}}}}"
    parts = ("name: classes", pools, "feeds:", *feeds, "tables:", *tables, "classes:", *classes)
    return "\n".join(parts) + "\n"


class ClassFeeds:
    """Data files: many rows that exist before the run, and few every five seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rng = np.random.default_rng(0)
        self._number = 0
        for name in _TABLES:
            (folder / name).mkdir(parents=True)

    def history(self, count: int) -> None:
        """Writes that many files of the past."""
        now = clock()
        for back in range(count, 0, -1):
            self._write("records", _HISTORY_ROWS, now - (back + 1) * _FILE_EVERY_S * SECOND)
        self._write("others", _ROWS, now - 2 * _FILE_EVERY_S * SECOND)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Writes files meanwhile."""
        over = threading.Event()

        def write() -> None:
            while not over.wait(_FILE_EVERY_S):
                for name in _TABLES:
                    self._write(name, _ROWS, clock())

        thread = threading.Thread(target=write, name="files", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _write(self, name: str, rows: int, newest_us: int) -> None:
        at = newest_us - np.arange(rows)[::-1] * (_FILE_EVERY_S * SECOND // rows)
        columns = {
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
            "k": self._rng.integers(0, 1_000_000, rows),
            "g": self._rng.integers(0, 50, rows),
            "x": self._rng.exponential(1.0, rows),
        }
        self._number += 1
        draft = self._folder / name / f".{self._number}.parquet"
        pq.write_table(pa.table(columns), draft)
        draft.rename(draft.with_name(f"{self._number}.parquet"))


def _open(folder: Path, **options: Any) -> Runner:
    from freshline.definitions.load import load
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner

    master = f"local[{os.cpu_count() or 2}]"
    return Runner(
        load(folder / "freshline.yml"), folder, folder / "warehouse", RunOptions(master=master, **options)
    )


@contextmanager
def _running(folder: Path, policy: str, files: int) -> Iterator[tuple[Runner, ProcessPoolExecutor]]:
    """A running warehouse with that many files of the past, and a process to send requests from."""
    landing = ClassFeeds(folder / "landing")
    (folder / "freshline.yml").write_text(project(policy), encoding="utf-8")
    landing.history(files)
    with _open(folder, drain=True, batches=False) as runner:
        runner.run()
    spawn = get_context("spawn")
    with _open(folder, warm="all") as runner, ProcessPoolExecutor(1, mp_context=spawn) as asker:
        thread = threading.Thread(target=runner.run, name="run")
        thread.start()
        try:
            with landing.coming():
                yield runner, asker
        finally:
            runner.stop("seen")
            thread.join()


def _one_by_one(count: int) -> list[ScheduledRequest]:
    """Every query and share, that many times."""
    return [
        ScheduledRequest(0.0, NAMES[0], sql, share, 10 * DEADLINE_S)
        for _ in range(count)
        for sql in _QUERIES
        for share in _SHARES
    ]


def _costs(runner: Runner) -> list[PartCost]:
    """The costs of parts of each query, from the run's history."""
    from freshline.live.requests.request_costs import RequestCosts, RequestExtent
    from freshline.storage.control.history import History

    read = {"records": ReadableTable("records")}
    extent = RequestExtent.of(runner.readable["records"].files)
    with History(runner.control.history, read_only=True) as history:
        costs = RequestCosts(history)
        return [costs.cost(read_request(sql, read).text, extent) for sql in _QUERIES]


def calibrate() -> int:
    """How many files of the past make reading all of it as costly as wanted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _running(folder, POLICIES[0], _CALIBRATED) as (runner, asker):
            asker.submit(send_each, runner.control.service, _one_by_one(_ANSWERS)).result()
            costs = _costs(runner)
    whole_us = mean(cost.slice_us * SLICES for cost in costs)
    return min(_HISTORY_MOST, max(1, round(_CALIBRATED * _WHOLE_US / max(1.0, whole_us))))


def run_policy(
    policy: str, files: int, phase_s: int, work_s: float | None = None, seed: int = 0
) -> dict[str, Any]:
    """Runs one policy. A request's time on the track, measured if not given, sets the rates of the loads."""
    from freshline.live.requests.part_worker import PartJudge
    from freshline_lab.experiments.job_ends import heard_ends

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _running(folder, policy, files) as (runner, asker):
            file = runner.control.service
            asker.submit(send_each, file, _one_by_one(1)).result()  # Spark compiles
            alone = _one_by_one(_ANSWERS - 1)
            ends: list[JobEnded] = []
            with heard_ends(PartJudge, ends.append):
                asker.submit(send_each, file, alone).result()
            work_us = sum(end.outcome for end in ends if isinstance(end.outcome, int))
            measured_s = work_us / len(alone) / SECOND
            work_s = measured_s if work_s is None else work_s
            phases = [(float(phase_s), load / 100 / work_s) for load in LOADS]
            queries = [(sql, share) for sql in _QUERIES for share in _SHARES]
            shares = [(each, share) for each, (_, _, share) in zip(NAMES, CLASSES, strict=True)]
            due = poisson(phases, shares, queries, DEADLINE_S, seed)
            with Noise() as noise:
                began = time.time()
                said = asker.submit(send_all, file, due).result()
            lost = noise.shares(began, time.time())
            status, asserted = runner.status(), dict(runner.records.observation.asserted_max_us)
    return _figures(policy, said, work_s, phase_s) | {
        "stolen": lost and lost[0],
        "tables": _tables(status, asserted),
    }


def _figures(policy: str, said: Sequence[SentRequest], work_s: float, phase_s: int) -> dict[str, Any]:
    phases = [(load, float(phase_s)) for load in LOADS]
    return {
        "policy": policy,
        "work": work_s,
        "requests": len(said),
        "phases": phases_of(said, phases, NAMES),
        "in_time": in_time(said),
        "inversion": worst_inversion(said, NAMES),
        "statuses": {str(each): sum(one.status == each for one in said) for each in {s.status for s in said}},
    }


def _tables(status: Any, asserted: dict[str, int | None]) -> list[dict[str, Any]]:
    found = []
    for table in status.tables:
        observed, bound = asserted.get(table.name), table.staleness_bound_us
        within = observed is None or (bound is not None and observed <= bound)
        record = {"name": table.name, "staleness": seconds(observed), "bound": seconds(bound)}
        found.append(record | {"jobs": table.jobs, "within_bound": within})
    return found


def run_live(into: Path, phase_s: int = SECONDS, quiet: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Writes live.json and live.md into a folder. Returns the results, and the unmet requirements."""
    screen = Console(stderr=True, quiet=quiet)
    record = run_all(phase_s, say=lambda text: screen.print(text, highlight=False))
    page = write_live_page(record, into)
    if not quiet:
        print(page.read_text(encoding="utf-8"))
    unmet = [f"{each['required']}: {each['measured']}" for each in record["requirements"] if not each["met"]]
    return {"live": record}, unmet


def run_all(
    phase_s: int = SECONDS, policies: Sequence[str] = POLICIES, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Calibrates once, then runs policies one after another, each in its own process and JVM."""
    say("Calibrating: how many rows a request of the wanted length reads")
    files = apart(calibrate)
    runs: list[dict[str, Any]] = []
    for policy in policies:
        say(f"{policy}: {len(LOADS)} loads of {phase_s} s over {files * _HISTORY_ROWS:,} rows")
        # All have the same rates: on a busy machine the time of a request changes by the minute.
        runs.append(apart(run_policy, policy, files, phase_s, runs[0]["work"] if runs else None))
    return {
        "seconds": phase_s,
        "loads": list(LOADS),
        "deadline": DEADLINE_S,
        "rows": files * _HISTORY_ROWS,
        "policies": runs,
        "requirements": requirements(runs[0], REFERENCES),
    }
