"""An outage of one feed, live on two nodes: the healthy output beside it is at most at its deadline.

Files of the feed are held back as long as the outage lasts, and then appear at once. The run takes that long.
Ages of rows are read from the commits in the Delta logs, and compared with the status.

    .venv/bin/python benchmarks/live_isolation.py --outage 5m
    .venv/bin/python benchmarks/live_isolation.py --outage 20m

Exit code 1: a row was lost or doubled, the healthy output was late while its assumptions held, or the late
one took longer than promised.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from freshline.base.clock import clock
from freshline.base.duration import SECOND, parse_duration
from freshline.cli.printing.outputs import with_placement
from freshline.definitions.load import load
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_recovery import StepRecovery
from freshline.storage.control.layout import StorageLayout
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.campaigns.kills.node_kills import NodesRun
from freshline_lab.campaigns.promises.commits import Commit, commits_of
from freshline_lab.experiments.noise import Noise

PATIENCE_S = 600.0
FEEDS = (FeedSpec("vehicles", "csv", 10, 400), FeedSpec("sensors", "json", 10, 300, phase_s=5))
LATE, HEALTHY = "speeding", "jams"
COLUMNS = {"speeding": ("ts", "car", "road", "speed"), "jams": ("ts", "road", "occupancy")}
FEED = "period: 10s, jitter: 1s, timestamp_jitter: 1s, age: 12s, timestamp: ts, node: edge"
PROJECT = f"""\
name: isolation
cores: 2
storage: warehouse
nodes: {{centre: {{master: "local[1]"}}, edge: {{master: "local[1]"}}}}
links: [[edge, centre]]
feeds:
  vehicles: {{path: landing/vehicles, format: csv, schema: "{FEEDS[0].schema}", rows: 40, burst: 400, {FEED}}}
  sensors: {{path: landing/sensors, format: json, schema: "{FEEDS[1].schema}", rows: 30, burst: 300, {FEED}}}
tables:
  vehicles: {{feed: vehicles, node: edge, cost: {{startup: COST, loaded: true}}}}
  speeding:
    sql: SELECT ts, car, road, speed FROM vehicles WHERE speed > 130
    node: centre
    deadline: 22s
    cost: {{startup: COST, loaded: true}}
  sensors: {{feed: sensors, node: edge, cost: {{startup: COST, loaded: true}}}}
  jams:
    sql: SELECT ts, road, occupancy FROM sensors WHERE occupancy > 95
    node: centre
    deadline: 22s
    cost: {{startup: COST, loaded: true}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outage", default="5m", help="how long the feed is silent")
    parser.add_argument("--before", default="1m", help="how long all is well before")
    parser.add_argument("--cost", default="1200ms", help="the declared cost of each step")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    before_s, outage_s = (parse_duration(text) / SECOND for text in (arguments.before, arguments.outage))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for spec in FEEDS:
            (folder / "landing" / spec.name).mkdir(parents=True)
        file = folder / "freshline.yml"
        file.write_text(PROJECT.replace("COST", arguments.cost), encoding="utf-8")
        return trial(file, before_s, outage_s, arguments.seed)


def trial(file: Path, before_s: float, outage_s: float, seed: int) -> int:
    """Runs it, prints what was found, and returns the exit code."""
    folder = file.parent
    plan = with_placement(make_plan(load(file)), {})
    proven = {output.name for output in plan.outputs if output.holds}
    files = round(outage_s / FEEDS[0].period_s)
    promised_s = promise_s(plan, files)
    print(
        f"plan: proven {sorted(proven)}; {files} files are held back, promised in {promised_s:.1f} s",
        flush=True,
    )
    down = (before_s, before_s + outage_s)
    run = NodesRun(file, output=folder / "said.txt", cold=False)
    try:
        run.wait_until(lambda: all(run.is_settled(node) for node in ("centre", "edge")), PATIENCE_S)
        start = clock()
        generator = Generator([replace(FEEDS[0], outages=(down,)), FEEDS[1]], folder / "landing", seed, start)
        with Noise() as noise:
            deliver(generator, before_s)
            early = broken(run)
            deliver(generator, outage_s)
            came = start + round(down[1] * SECOND)
            deliver_until_recovered(generator, folder, came, promised_s)
        generator_end = clock()
        generator.due(generator_end)
        wait_for_rows(folder, generator, generator_end)
        run.process.send_signal(signal.SIGTERM)
        code, summary = run.end(PATIENCE_S)
    finally:
        run.stop(60)
    print(noise.sentence(start / SECOND))
    print(f"exit code {code}; broken assumptions before the outage:")
    print("".join(f"  {line}\n" for line in early), end="")
    print("new or other ones since:")
    print("".join(f"  {line}\n" for line in summary["broken_assumptions"] if line not in early), end="")
    wrong = [f"exit code {code}"] * (code not in (0, 1))
    wrong += lost(folder, generator, generator_end)
    wrong += judged(folder, summary, proven, came, promised_s, outage_s)
    print("\n".join(f"WRONG: {what}" for what in wrong) or "all held", flush=True)
    return 1 if wrong else 0


def broken(run: NodesRun) -> list[str]:
    """The broken assumptions that both nodes name now."""
    statuses = [run.status(node) for node in ("centre", "edge")]
    return [
        f"{each.node}: {line}" for each in statuses if each is not None for line in each.broken_assumptions
    ]


def promise_s(plan: Plan, files: int) -> float:
    assert plan.placed is not None
    promised_us = StepRecovery(plan.warehouse, plan.placed).promises_us({"vehicles": files})[LATE]
    assert promised_us is not None, "nothing is promised"
    return promised_us / SECOND


def deliver(generator: Generator, for_s: float) -> None:
    """Writes files as they are due, for that long."""
    stop = threading.Event()
    timer = threading.Timer(for_s, stop.set)
    timer.start()
    try:
        generator.run(stop)
    finally:
        timer.cancel()


def deliver_until_recovered(generator: Generator, folder: Path, came: int, promised_s: float) -> None:
    """Goes on until no commit of the late output was recovery for 30 s, and longer than promised at most."""
    last = came
    while clock() < last + 30 * SECOND and clock() < came + round((promised_s + 60) * SECOND):
        deliver(generator, 5)
        last = max([last, *(each.at for each in commits(folder, LATE) if each.recovery)])


def commits(folder: Path, table: str) -> list[Commit]:
    return commits_of(StorageLayout(folder / "warehouse").table(table))


def expected(generator: Generator, until: int) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of both outputs, computed without Spark."""
    rows = {
        spec.name: [
            row for number in generator.numbers(spec.name, until) for row in generator.rows(spec.name, number)
        ]
        for spec in FEEDS
    }
    return {
        LATE: Counter(row for row in rows["vehicles"] if row[3] > 130),
        HEALTHY: Counter(row for row in rows["sensors"] if row[2] > 95),
    }


def stored(folder: Path, table: str) -> Counter[tuple[Any, ...]]:
    columns: Sequence[str] = COLUMNS[table]
    path = StorageLayout(folder / "warehouse").table(table)
    data = DeltaTable(path).to_pyarrow_dataset().to_table(columns=list(columns))
    return Counter(zip(*(data[column].to_pylist() for column in columns), strict=True))


def wait_for_rows(folder: Path, generator: Generator, until: int) -> None:
    """Until both outputs have as many rows as they must, or a minute has passed."""
    wanted = {table: rows.total() for table, rows in expected(generator, until).items()}
    patience = time.monotonic() + 60
    while time.monotonic() < patience:
        if all(stored(folder, table).total() >= count for table, count in wanted.items()):
            return
        time.sleep(1)


def lost(folder: Path, generator: Generator, until: int) -> list[str]:
    found = []
    for table, rows in expected(generator, until).items():
        there = stored(folder, table)
        missing, doubled = (rows - there).total(), (there - rows).total()
        print(f"{table}: {rows.total()} rows expected, {missing} lost, {doubled} doubled")
        if missing or doubled:
            found.append(f"{table} lacks {missing} rows and has {doubled} too many")
    return found


def judged(
    folder: Path, summary: dict[str, Any], proven: set[str], came: int, promised_s: float, outage_s: float
) -> list[str]:
    """What was promised and did not hold."""
    wrong = []
    since = came - round(outage_s * SECOND)
    ends = [each.at for each in commits(folder, LATE) if each.recovery and each.at > came]
    recovered_s = (max(ends) - came) / SECOND if ends else 0.0
    took = f"recovered {recovered_s:.1f} s after the backlog came ({len(ends)} commits)"
    print(f"{LATE}: {took}, promised {promised_s:.1f} s")
    if recovered_s > promised_s:
        wrong.append(f"{LATE} recovered in {recovered_s:.1f} s, {promised_s:.1f} s were promised")
    for table in (HEALTHY, LATE):
        told = next(each for each in summary["outputs"] if each["name"] == table)
        print(f"{table}: {json.dumps(told)}")
        parts = {"before": (0, since), "outage": (since, came)}
        parts |= {
            "recovery": (came, came + round(recovered_s * SECOND)),
            "after": (max([came, *ends]), 2**62),
        }
        for part, (begin, end) in parts.items():
            ages = [each.age_us / SECOND for each in commits(folder, table) if begin < each.at <= end]
            if ages:
                print(f"  {part}: {len(ages)} commits, the oldest row {max(ages):.2f} s old")
        worst_s = max(each.age_us for each in commits(folder, table)) / SECOND
        if table == HEALTHY and table not in proven:
            wrong.append(f"{table} is not proven")
        if table == HEALTHY and (worst_s > told["deadline"] or told["misses"]):
            wrong.append(
                f"{table}: a row was {worst_s:.2f} s old, {told['misses']} late, deadline {told['deadline']}"
            )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
