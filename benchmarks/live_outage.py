"""Paper 001's feeds at a hundredth of its time, live: Freshline and plain Structured Streaming side by side.

Seven feeds every 3 s (8,000 rows of timestamp, long, string) and seven every 9 s (100,000 rows), three nested
sha2 over the string, two tracks; four of the first seven feeds are down from second 50 to 100.

    .venv/bin/python benchmarks/live_outage.py                 # 300 s each
    .venv/bin/python benchmarks/live_outage.py --seconds 150 --only freshline
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from freshline.definitions.duration import SECOND
from freshline.testing.network import FeedSpec, Generator

HASHED = "sha2(sha2(sha2(text, 256), 256), 256) AS text"
DOWN = (50.0, 100.0)
SHORT, LONG = 3, 9

Loads = dict[str, list[tuple[int, int]]]  # by table: (instant, freshness reached)


def specs(rows: tuple[int, int]) -> list[FeedSpec]:
    """t1 to t7 and t8 to t14; the first four have the outage."""
    feeds = []
    for number in range(1, 15):
        period, count = (SHORT, rows[0]) if number <= 7 else (LONG, rows[1])
        outages = (DOWN,) if number <= 4 else ()
        feeds.append(FeedSpec(f"t{number}", "csv", period, count, kind="records", outages=outages))
    return feeds


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one table fared, in its periods; for a late one, when it had caught up."""

    table: str
    lag_max: float
    staleness_max: float
    caught_up_s: float | None


def judge(loads: Loads, feeds: list[FeedSpec], generator: Generator, start: int, end: int) -> list[Verdict]:
    """The same for both: from when files came and when they were loaded."""
    verdicts = []
    for spec in feeds:
        numbers = generator.numbers(spec.name, end)
        events = [(generator.delivered_us(spec.name, n), 1, generator.due_us(spec.name, n)) for n in numbers]
        # A load before an arrival at the same instant: lag is what it is just before.
        events += [(at, 0, reached) for at, reached in loads.get(spec.name, []) if at <= end]
        edge = fresh = start
        lag_us_max = staleness_us_max = 0
        caught_up = None
        for at, kind, instant in sorted(events):
            staleness_us_max = max(staleness_us_max, at - fresh)
            if kind:
                edge = max(edge, instant)
            else:
                fresh = max(fresh, instant)
            lag_us = edge - fresh
            lag_us_max = max(lag_us_max, lag_us)
            if lag_us > spec.period_us:
                caught_up = None
            elif caught_up is None:
                caught_up = at
        late = bool(spec.outages) and lag_us_max > spec.period_us
        caught_up_s = (caught_up - start) / SECOND if late and caught_up is not None else None
        period = spec.period_us
        verdicts.append(Verdict(spec.name, lag_us_max / period, staleness_us_max / period, caught_up_s))
    return verdicts


def show(name: str, verdicts: list[Verdict], busy: float | None) -> None:
    healthy = [verdict for verdict in verdicts if verdict.table not in ("t1", "t2", "t3", "t4")]
    worst_lag = max(healthy, key=lambda verdict: verdict.lag_max)
    worst_staleness = max(healthy, key=lambda verdict: verdict.staleness_max)
    tracks = "" if busy is None else f", {busy:.0%} of two tracks busy"
    print(f"{name}{tracks}")
    print(
        f"  healthy tables: worst lag {worst_lag.lag_max:.2f} periods ({worst_lag.table}), "
        f"worst staleness {worst_staleness.staleness_max:.2f} periods ({worst_staleness.table})"
    )
    for verdict in verdicts[:4]:
        when = "not caught up" if verdict.caught_up_s is None else f"caught up at {verdict.caught_up_s:.0f} s"
        print(f"  {verdict.table}: {when} (down until {DOWN[1]:.0f} s)", flush=True)


def project(feeds: list[FeedSpec], policy: str) -> str:
    lines = [
        "name: outage",
        "storage: warehouse",
        f"pools: {{updates: {{tracks: 2, policy: {policy}}}}}",
        "feeds:",
    ]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: csv, schema: "{spec.schema}", timestamp: ts, '
        f"period: {spec.period_us // 1000}ms}}"
        for spec in feeds
    ]
    lines.append("tables:")
    lines += [
        f"  {spec.name}: {{feed: {spec.name}, "
        f'select: "SELECT ts, number, {HASHED} FROM {spec.name}", cost: {{startup: 300ms}}}}'
        for spec in feeds
    ]
    return "\n".join([*lines, ""])


def freshline(folder: Path, rows: tuple[int, int], policy: str, seconds: int) -> None:
    from freshline.definitions.load import load
    from freshline.live.runner import Runner

    feeds = specs(rows)
    file = folder / "freshline.yml"
    file.write_text(project(feeds, policy), encoding="utf-8")
    with Runner(load(file), folder, folder / "warehouse", master="local[2]") as runner:
        start = _whole_period()
        with _generating(Generator(feeds, folder / "landing", 0, start)) as generator:
            runner.run(start + seconds * SECOND - time.time_ns() // 1_000)
        end = time.time_ns() // 1_000
        notes = len(runner.keeper.notes)
        (log,) = (folder / "warehouse/_freshline/logs").iterdir()
    loads: Loads = {}
    busy_us = 0
    started: dict[str, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        call = json.loads(line)
        for event in call.get("events", ()):
            if "finished" in event:
                loads.setdefault(event["finished"], []).append((call["now"], event["freshness"]))
                busy_us += call["now"] - started.pop(event["finished"])
        for instruction in call.get("instructions", ()):
            started[instruction["start"]] = call["now"]
    verdicts = judge(loads, feeds, generator, start, end)
    show(f"freshline, {policy}, rows {rows}", verdicts, busy_us / (end - start) / 2)
    print(f"  assumptions that did not hold: {notes} (cost overruns and silences)", flush=True)


def streaming(folder: Path, rows: tuple[int, int], seconds: int) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    feeds = specs(rows)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )
    for spec in feeds:
        (folder / "landing" / spec.name).mkdir(parents=True)
    start = _whole_period()
    queries = {}
    for spec in feeds:
        frame = (
            session.readStream.schema(spec.schema)
            .option("header", True)
            .csv(str(folder / "landing" / spec.name))
            .selectExpr("ts", "number", HASHED)
            .observe("loaded", f.max(f.unix_micros("ts")).alias("newest"))
        )
        session.sparkContext.setLocalProperty("spark.scheduler.pool", spec.name)
        queries[spec.name] = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoints" / spec.name))
            .trigger(processingTime=f"{spec.period_us // 1000} milliseconds")
            .start(str(folder / "tables" / spec.name))
        )
    with _generating(Generator(feeds, folder / "landing", 0, start)) as generator:
        time.sleep(max(0.0, (start + seconds * SECOND) / SECOND - time.time()))
    end = time.time_ns() // 1_000
    loads = {name: list(_batches(query.recentProgress)) for name, query in queries.items()}
    for query in queries.values():
        query.stop()
    session.stop()
    show(f"structured streaming, rows {rows}", judge(loads, feeds, generator, start, end), None)


def _batches(progress):
    for batch in progress:
        loaded = batch["observedMetrics"].get("loaded")
        if loaded is not None and loaded["newest"] is not None:
            begun = datetime.fromisoformat(batch["timestamp"]).timestamp()
            ended = begun + batch["durationMs"]["triggerExecution"] / 1_000
            yield round(ended * SECOND), loaded["newest"]


def _whole_period() -> int:
    """A start at a whole multiple of both periods, so that all feeds begin together, as in the paper."""
    period_us = LONG * SECOND
    return (time.time_ns() // 1_000 // period_us + 1) * period_us


class _generating:  # noqa: N801  (reads as a statement: with _generating(...))
    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._stop = threading.Event()
        self._thread = threading.Thread(target=generator.run, args=(self._stop,), daemon=True)

    def __enter__(self) -> Generator:
        self._thread.start()
        return self._generator

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument(
        "--rows", type=int, nargs=2, default=[8_000, 100_000], help="of a short and a long file"
    )
    parser.add_argument("--policy", nargs="+", default=["edf"])
    parser.add_argument("--only", choices=["freshline", "streaming"])
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = (arguments.rows[0], arguments.rows[1])
    if arguments.here:
        if arguments.only == "freshline":
            freshline(arguments.here, rows, arguments.policy[0], arguments.seconds)
        else:
            streaming(arguments.here, rows, arguments.seconds)
        return
    runs = [("freshline", policy) for policy in arguments.policy] + [("streaming", "")]
    for kind, policy in runs:
        if arguments.only in (None, kind):
            # A process and a JVM of its own for each.
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "--here", folder, "--only", kind]
                command += ["--seconds", str(arguments.seconds), "--rows", *map(str, rows)]
                command += ["--policy", policy] if policy else []
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
