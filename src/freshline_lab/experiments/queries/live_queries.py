"""Paper 000's queries live on Spark: a calibration, then each policy in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.learned_queries import parts_of
from freshline.service.client import ask
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.outages.outage_feeds import generating
from freshline_lab.experiments.queries.live_table_2 import (
    DEMAND,
    FILE_EVERY_S,
    TABLES,
    LiveQuery,
    QueryCost,
    QuerySizes,
    last_answers,
    project,
    queries,
    query_cost,
    sizes,
)
from freshline_lab.experiments.queries.query_answers import EndedIteration, PolicyRun, requirements, verdict

POLICIES: Final = {
    "lrm": "policy: lrm",
    "lrm-paper": "policy: lrm-paper",
    "rm": "policy: rm, preemptive: true",
    "hpf": "policy: rm",
}
SECONDS: Final = 180
QUERIES: Final = 10
# Calibration needs enough rows to exceed the noise.
CALIBRATED_ROWS: Final = 4_000  # a second
CALIBRATED_S: Final = 96
ANSWERS: Final = 4
_T = TypeVar("_T")
_SHIFT: Final = 7_919  # between the numbers of a file and of the next


@dataclass(frozen=True, slots=True)
class FileEdit:
    """An edited file that a run receives after some seconds, and the queries that are in both files."""

    after_s: float
    text: str
    stay: frozenset[str]


class ShiftedFeeds(Generator):
    """Feeds whose files differ only in their timestamps and a shift of their numbers.

    Generating every file would take time from the tracks.
    """

    def __init__(self, rows: int, folder: Path, start_us: int) -> None:
        specs = [FeedSpec(name, "parquet", FILE_EVERY_S, rows, kind="records") for name in TABLES]
        super().__init__(specs, folder, 0, start_us)
        self._models: dict[str, tuple[Any, Any]] = {}  # microseconds before the end, numbers

    def table(self, feed: str, number: int) -> Any:
        if feed not in self._models:
            made = super().table(feed, 1)
            before = pc.subtract(made["ts"].cast(pa.int64()), self.due_us(feed, 1))
            self._models[feed] = before, made["number"]
        before, numbers = self._models[feed]
        at = pc.add(before, self.due_us(feed, number)).cast(pa.timestamp("us", "UTC"))
        return pa.table({"ts": at, "number": pc.add(numbers, number * _SHIFT)})


def _preload(folder: Path, asked: Sequence[LiveQuery], rows: int, history_us: int, pool: str) -> Generator:
    """Loads tables with that much of the past; returns the generator of the next files."""
    from freshline.definitions.load import load
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner

    generator = ShiftedFeeds(rows * FILE_EVERY_S, folder / "landing", clock() - history_us)
    generator.due(clock())
    file = folder / "freshline.yml"
    file.write_text(project((), rows, pool), encoding="utf-8")
    storage = folder / "warehouse"
    with Runner(
        load(file), folder, storage, RunOptions(master=_master(), drain=True, batches=False)
    ) as runner:
        runner.run()
    file.write_text(project(asked, rows, pool), encoding="utf-8")
    return generator


def _master() -> str:
    return f"local[{os.cpu_count() or 2}]"


def calibrate(count: int) -> tuple[dict[str, QueryCost], list[PastRun]]:
    """The cost of each query alone, over existing tables, and the costs of updates."""
    from freshline.definitions.load import load
    from freshline.live.queries.query_work import QueryWork
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner
    from freshline.storage.control.history import History

    asked = queries(count, 1, CALIBRATED_S // FILE_EVERY_S)
    asked = tuple(_with_window(query, CALIBRATED_S * SECOND) for query in asked)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        history_us = (CALIBRATED_S + FILE_EVERY_S) * SECOND
        _preload(folder, asked, CALIBRATED_ROWS, history_us, POLICIES["lrm"])
        warehouse = load(folder / "freshline.yml")
        # All queries, one after another; Spark compiles during the opening.
        with Runner(
            warehouse, folder, folder / "warehouse", RunOptions(master=_master(), warm="all")
        ) as runner:
            for _ in range(ANSWERS):
                runner.work(QueryWork).warm_up()
            path = runner.control.history
        with History(path, read_only=True) as history:
            costs = {
                query.name: query_cost(
                    last_answers(parts_of(history, warehouse.queries[query.name]), ANSWERS)
                )
                for query in asked
            }
            updates = [run for table in TABLES for run in history.runs(table)[1:]]
    return costs, updates


def _with_window(query: LiveQuery, window_us: int) -> LiveQuery:
    return LiveQuery(query.name, query.sql, query.stride_us, window_us, query.weight, query.selectivity)


def run_policy(policy: str, sized: QuerySizes, seconds: int, edit: FileEdit | None = None) -> dict[str, Any]:
    """Runs one policy over tables with full windows, for that many seconds.

    With an edit, only queries that are in both files are judged.
    """
    from freshline.definitions.load import load
    from freshline.live.queries.iteration_worker import IterationJudge
    from freshline.live.queries.query_work import QueryWork
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner
    from freshline.storage.control.history import History
    from freshline_lab.experiments.job_ends import heard_ends

    with tempfile.TemporaryDirectory() as name:
        folder, pool = Path(name), POLICIES[policy]
        history_us = sized.history_us + FILE_EVERY_S * SECOND
        generator = _preload(folder, sized.queries, sized.rows_a_second, history_us, pool)
        warehouse, ended = load(folder / "freshline.yml"), []
        with (
            Noise() as noise,
            Runner(
                warehouse, folder, folder / "warehouse", RunOptions(master=_master(), warm="all")
            ) as runner,
        ):
            start = runner.kernel.now
            with (
                generating(generator),
                heard_ends(IterationJudge, lambda end: ended.append(_ended(end.job, end.outcome))),
                _edited(edit, runner.control.service) as answers,
            ):
                runner.run(start + seconds * SECOND - clock())
            end, refused = start + seconds * SECOND, runner.work(QueryWork).queries.refusals()
            path = runner.control.history
        with History(path, read_only=True) as history:
            updates = [run for table in TABLES for run in history.runs(table) if run.started >= start]
    ran = PolicyRun(policy, start, end, ended, updates, noise)
    stay = [query for query in sized.queries if edit is None or query.name in edit.stay]
    return verdict(ran, stay, sized.cycle_us) | {"refused": refused, "applied": answers}


@contextmanager
def _edited(edit: FileEdit | None, service: Path) -> Iterator[list[dict[str, Any]]]:
    """Sends the run an edited file meanwhile; yields the list that its answer will be in."""
    answers: list[dict[str, Any]] = []
    if edit is None:
        yield answers
        return

    def send() -> None:
        if not over.wait(edit.after_s):
            answers.append(ask(service, "POST", "/v1/apply", edit.text.encode()))

    over, thread = Event(), Thread(target=send, daemon=True)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def _ended(job: Any, done: Any) -> EndedIteration:
    """The iteration as the run's thread saw its end."""
    task, about = job.task, (job.task.name, job.release, job.deadline, job.start)
    if isinstance(done, BaseException):
        return EndedIteration(*about, finished=clock(), failed=True)
    load, allowed_us = task.load, job.budget_us
    if allowed_us is None and job.keep != 1:
        allowed_us = load.fixed_us + round((load.cost_us - load.fixed_us) * job.keep)
    return EndedIteration(
        *about, done.finished_us, done.ran_us, allowed_us, done.keep, done.known, looked=done.looked
    )


def run_all(
    seconds: int = SECONDS,
    count: int = QUERIES,
    policies: Sequence[str] = tuple(POLICIES),
    demand: float = DEMAND,
) -> dict[str, Any]:
    """Calibrates once, then runs policies one after another, each in its own process and JVM."""
    costs, updates = apart(calibrate, count)
    sized = sizes(costs, updates, demand)
    live: dict[str, Any] = {
        "seconds": seconds,
        "demand": sized.demand,
        "loading": sized.loading,
        "rows_a_second": sized.rows_a_second,
        "strides_in_window": sized.strides_in_window,
        "strides_longer": sized.longer,
        "queries": [
            {"name": query.name, "stride": query.stride_us / SECOND, "window": query.window_us / SECOND}
            | asdict(costs[query.name])
            for query in sized.queries
        ],
        "policies": [apart(run_policy, policy, sized, seconds) for policy in policies],
    }
    return live | {"requirements": requirements(live)}


def apart(what: Callable[..., _T], *arguments: object) -> _T:
    """Calls a function in its own process, with its own JVM."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        return executor.submit(what, *arguments).result()
