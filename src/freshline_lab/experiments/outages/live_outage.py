"""Paper 001's outage live on Spark, at a hundredth of its time: feeds, project, run and verdict."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.outages.live_verdict import (
    FileCosts,
    Loads,
    LoggedUpdate,
    fell_behind,
    judge,
    overrun_us,
    show,
)
from freshline_lab.experiments.outages.outage_feeds import CopiedFeeds, Rows, generating, specs, whole_period

HASHED: Final = "sha2(sha2(sha2(text, 256), 256), 256) AS text"
ROWS: Final = (8_000, 100_000)
# The cost of 19 of 20 updates, of a short file and of a long one, on two mostly idle cores.
COSTS_MS: Final = (380, 900)
# A file is found slightly after it was due.
JITTER_MS: Final = 500
COMPARED: Final = ("aus", "aus-slack", "edf", "prp")
TRACKS: Final = 2
NOTES_MAX: Final = 10


def project(feeds: list[FeedSpec], policy: str, costs_ms: FileCosts) -> str:
    """The warehouse as a user's file."""
    lines = [
        "name: outage",
        "storage: warehouse",
        f"pools: {{updates: {{tracks: {TRACKS}, policy: {policy}}}}}",
        "feeds:",
    ]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: csv, schema: "{spec.schema}", timestamp: ts, '
        f"period: {spec.period_us // 1000}ms, jitter: {JITTER_MS}ms}}"
        for spec in feeds
    ]
    lines.append("tables:")
    lines += [
        f'  {spec.name}: {{feed: {spec.name}, select: "SELECT ts, number, {HASHED} FROM {spec.name}", '
        f"cost: {_cost(feeds, spec, costs_ms)}}}"
        for spec in feeds
    ]
    return "\n".join([*lines, ""])


def _cost(feeds: list[FeedSpec], spec: FeedSpec, costs_ms: FileCosts) -> str:
    """A start-up, the same for all, and a cost per row: together the cost of a file of its kind."""
    short, long = feeds[0].rows, feeds[-1].rows
    row_ms = max(0.0, (costs_ms[1] - costs_ms[0]) / (long - short))
    rate = row_ms * spec.rows / (spec.period_us / 1_000)
    return f"{{startup: {max(1, round(costs_ms[0] - row_ms * short))}ms, rate: {rate:.6f}}}"


@dataclass(frozen=True, slots=True)
class OutageRun:
    """A run of Freshline: its time, its updates, and the assumptions that it reports as broken."""

    start: int
    end: int
    updates: list[LoggedUpdate]
    notes: list[str]
    recoveries: list[str]  # what was promised, and the outcome
    generator: Generator


def run(
    folder: Path,
    feeds: list[FeedSpec],
    policy: str,
    seconds: int,
    costs_ms: FileCosts,
    backlog_s: int = 0,
    batches: bool = True,
) -> OutageRun:
    """A run of that many seconds; a backlog of `backlog_s` seconds waits at its start."""
    from freshline.definitions.load import load
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner

    file = folder / "freshline.yml"
    file.write_text(project(feeds, policy, costs_ms), encoding="utf-8")
    warehouse, storage, master = load(file), folder / "warehouse", f"local[{TRACKS}]"
    with Runner(warehouse, folder, storage, RunOptions(master=master, warm="all", batches=batches)) as runner:
        start = whole_period()
        with generating(CopiedFeeds(feeds, folder / "landing", start - backlog_s * SECOND)) as generator:
            runner.run(start + seconds * SECOND - clock())
        end = clock()
        status = runner.status()
        (log,) = (folder / "warehouse/_freshline/logs").iterdir()
    notes, recoveries = list(status.broken_assumptions), list(status.recoveries)
    return OutageRun(start, end, list(_updates(log)), notes, recoveries, generator)


def _updates(log: Path) -> Iterator[LoggedUpdate]:
    started: dict[str, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        call = json.loads(line)
        for event in call.get("events", ()):
            if "finished" in event:
                name = event["finished"]
                yield LoggedUpdate(name, started.pop(name), call["now"], event["freshness"])
        for instruction in call.get("instructions", ()):
            started[instruction["start"]] = call["now"]


def freshline(folder: Path, rows: Rows, policy: str, seconds: int, costs_ms: FileCosts) -> dict[str, Any]:
    """Runs one policy, prints its results, and returns them as a record."""
    feeds = specs(rows)
    with Noise() as noise:
        ran = run(folder, feeds, policy, seconds, costs_ms)
    loads: Loads = {}
    for update in ran.updates:
        loads.setdefault(update.table, []).append((update.end, update.freshness))
    busy_us = sum(update.end - update.start for update in ran.updates)
    busy = busy_us / (ran.end - ran.start) / TRACKS
    verdicts = judge(loads, feeds, ran.generator, ran.start, ran.end)
    show(f"freshline, {policy}, rows {rows}", verdicts, busy, noise.sentence(ran.start / SECOND))
    for recovery in ran.recoveries:
        print(f"  {recovery}")
    show_assumptions(ran, costs_ms)
    causes = list(fell_behind(verdicts, ran.updates, ran.start, TRACKS, costs_ms, noise))
    for cause in causes:
        print(f"  {cause}", flush=True)
    return {
        "policy": policy,
        "busy": busy,
        "tables": [asdict(verdict) for verdict in verdicts],
        "recoveries": ran.recoveries,
        "broken_assumptions": ran.notes,
        "fell_behind": causes,
        "noise": noise.sentence(ran.start / SECOND),
    }


def show_assumptions(ran: OutageRun, costs_ms: FileCosts) -> None:
    """Prints the assumptions of the bounds that did not hold."""
    over = [update for update in ran.updates if overrun_us(update, costs_ms) > 0]
    first = f", the first at {(over[0].start - ran.start) / SECOND:.0f} s" if over else ""
    print(
        f"  updates above their declared cost ({costs_ms[0]} and {costs_ms[1]} ms): {len(over)} of "
        f"{len(ran.updates)}{first}"
    )
    print(f"  assumptions that did not hold, by table or feed: {len(ran.notes)}", flush=True)
    for note in ran.notes[-NOTES_MAX:]:
        print(f"    {note}", flush=True)


def run_all(seconds: int, *, quiet: bool = False) -> dict[str, Any]:
    """Runs the policies one after another, each in its own process and JVM."""
    spawn = multiprocessing.get_context("spawn")
    outcomes = []
    for policy in COMPARED:
        with ProcessPoolExecutor(1, mp_context=spawn) as executor:
            outcomes.append(executor.submit(_apart, policy, seconds, quiet).result())
    return {"seconds": seconds, "outcomes": outcomes}


def _apart(policy: str, seconds: int, quiet: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        if not quiet:
            return freshline(Path(folder), ROWS, policy, seconds, COSTS_MS)
        with redirect_stdout(StringIO()):
            return freshline(Path(folder), ROWS, policy, seconds, COSTS_MS)
