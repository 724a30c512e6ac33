"""Paper 001's feeds at a hundredth of its time, live: Freshline and plain Structured Streaming side by side.

Seven feeds every 3 s (8,000 rows of timestamp, long, string) and seven every 9 s (100,000 rows), three nested
sha2 over the string, two tracks; four of the first seven feeds are down from second 50 to 100. Once as it is,
and once with so many rows that two tracks are 85 % busy; what a file costs is found by short runs beforehand.

    .venv/bin/python benchmarks/live_outage.py                 # 300 s each
    .venv/bin/python benchmarks/live_outage.py --seconds 150 --only freshline --busy 0.85
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

from freshline.definitions.duration import SECOND
from freshline.testing.network import FeedSpec, Generator
from outage_feeds import DOWN, LONG, RATES, SHORT, Copies, Rows, generating, is_short, specs, whole_period

HASHED: Final = "sha2(sha2(sha2(text, 256), 256), 256) AS text"
TRACKS: Final = 2
# Declared costs are the longest seen when all was warm, and so much more.
HEADROOM: Final = 1.25
NOTES_MAX: Final = 10

Costs = tuple[int, int]  # of their updates, in ms
Loads = dict[str, list[tuple[int, int]]]  # by table: (instant, freshness reached)


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


def project(feeds: list[FeedSpec], policy: str, costs_ms: Costs) -> str:
    lines = [
        "name: outage",
        "storage: warehouse",
        f"pools: {{updates: {{tracks: {TRACKS}, policy: {policy}}}}}",
        "feeds:",
    ]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: csv, schema: "{spec.schema}", timestamp: ts, '
        f"period: {spec.period_us // 1000}ms}}"
        for spec in feeds
    ]
    lines.append("tables:")
    lines += [
        f'  {spec.name}: {{feed: {spec.name}, select: "SELECT ts, number, {HASHED} FROM {spec.name}", '
        f"cost: {{startup: {_of_kind(costs_ms, spec.name)}ms}}}}"
        for spec in feeds
    ]
    return "\n".join([*lines, ""])


@dataclass(frozen=True, slots=True)
class Update:
    """One update of a table, as the run's log has it."""

    table: str
    start: int
    end: int
    freshness: int


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of Freshline: from when to when, what it did, and which assumptions it says did not hold."""

    start: int
    end: int
    updates: list[Update]
    notes: list[str]
    generator: Generator


def run(folder: Path, feeds: list[FeedSpec], policy: str, seconds: int, costs_ms: Costs) -> Ran:
    from freshline.definitions.load import load
    from freshline.live.runner import Runner

    file = folder / "freshline.yml"
    file.write_text(project(feeds, policy, costs_ms), encoding="utf-8")
    with Runner(load(file), folder, folder / "warehouse", master=f"local[{TRACKS}]") as runner:
        start = whole_period()
        with generating(Copies(feeds, folder / "landing", start)) as generator:
            runner.run(start + seconds * SECOND - time.time_ns() // 1_000)
        end = time.time_ns() // 1_000
        notes = list(runner.status().broken_assumptions)
        (log,) = (folder / "warehouse/_freshline/logs").iterdir()
    return Ran(start, end, list(_updates(log)), notes, generator)


def _updates(log: Path) -> Iterator[Update]:
    started: dict[str, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        call = json.loads(line)
        for event in call.get("events", ()):
            if "finished" in event:
                name = event["finished"]
                yield Update(name, started.pop(name), call["now"], event["freshness"])
        for instruction in call.get("instructions", ()):
            started[instruction["start"]] = call["now"]


def freshline(folder: Path, rows: Rows, policy: str, seconds: int, costs_ms: Costs) -> None:
    feeds = specs(rows)
    ran = run(folder, feeds, policy, seconds, costs_ms)
    loads: Loads = {}
    for update in ran.updates:
        loads.setdefault(update.table, []).append((update.end, update.freshness))
    busy_us = sum(update.end - update.start for update in ran.updates)
    verdicts = judge(loads, feeds, ran.generator, ran.start, ran.end)
    show(f"freshline, {policy}, rows {rows}", verdicts, busy_us / (ran.end - ran.start) / TRACKS)
    show_assumptions(ran, costs_ms)


def show_assumptions(ran: Ran, costs_ms: Costs) -> None:
    """What the bounds rest on and did not hold."""
    over = [
        update
        for update in ran.updates
        if update.end - update.start > _of_kind(costs_ms, update.table) * 1_000
    ]
    first = f", the first at {(over[0].start - ran.start) / SECOND:.0f} s" if over else ""
    print(
        f"  updates above their declared cost ({costs_ms[0]} and {costs_ms[1]} ms): {len(over)} of "
        f"{len(ran.updates)}{first}"
    )
    print(f"  assumptions that did not hold, by table or feed: {len(ran.notes)}", flush=True)
    for note in ran.notes[-NOTES_MAX:]:
        print(f"    {note}", flush=True)


def streaming(folder: Path, rows: Rows, seconds: int) -> None:
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
    start = whole_period()
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
    with generating(Copies(feeds, folder / "landing", start)) as generator:
        time.sleep(max(0.0, (start + seconds * SECOND) / SECOND - time.time()))
    end = time.time_ns() // 1_000
    loads = {name: list(_batches(query.recentProgress)) for name, query in queries.items()}
    session.sparkContext.setLogLevel("OFF")  # batches that are cut short here are no errors
    for query in queries.values():
        query.stop()
    session.stop()
    show(f"structured streaming, rows {rows}", judge(loads, feeds, generator, start, end), None)


def _batches(progress: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    for batch in progress:
        loaded = batch["observedMetrics"].get("loaded")
        if loaded is not None and loaded["newest"] is not None:
            begun = datetime.fromisoformat(batch["timestamp"]).timestamp()
            ended = begun + batch["durationMs"]["triggerExecution"] / 1_000
            yield round(ended * SECOND), loaded["newest"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an update costs with so many rows, short and long: on average, and the longest."""

    rows: Rows
    mean_ms: tuple[float, float]
    longest_ms: tuple[float, float]

    def busy(self) -> float:
        """Which share of the tracks this takes."""
        return sum(mean * rate for mean, rate in zip(self.mean_ms, RATES, strict=True)) / 1_000 / TRACKS

    def factor(self, share: float) -> float:
        """How many times the rows would take that share, if cost is a start-up and so much a row."""
        slope = (self.mean_ms[1] - self.mean_ms[0]) / (self.rows[1] - self.rows[0])
        start_up = self.mean_ms[0] - slope * self.rows[0]
        by_row = slope * sum(rows * rate for rows, rate in zip(self.rows, RATES, strict=True))
        return (share * TRACKS * 1_000 - start_up * sum(RATES)) / by_row

    def declared(self, factor: float = 1.0) -> Costs:
        """The costs to declare, for that many times the rows."""
        short, long = (round(longest * max(1.0, factor) * HEADROOM) for longest in self.longest_ms)
        return short, long


def calibration(folder: Path, rows: Rows, seconds: int) -> None:
    """A run without an outage; its first third is Java's warming up."""
    ran = run(folder, specs(rows, down=False), "edf", seconds, (SHORT * 1_000, LONG * 1_000))
    warm = [update for update in ran.updates if update.start > ran.start + (ran.end - ran.start) // 3]
    kinds = [
        [(update.end - update.start) / 1_000 for update in warm if is_short(update.table) == short]
        for short in (True, False)
    ]
    print(
        json.dumps({"mean_ms": [mean(kind) for kind in kinds], "longest_ms": [max(kind) for kind in kinds]})
    )


def measure(rows: Rows, seconds: int) -> Measured:
    said = json.loads(_in_a_process("calibration", rows, seconds, capture=True).splitlines()[-1])
    measured = Measured(rows, tuple(said["mean_ms"]), tuple(said["longest_ms"]))
    print(
        f"calibration, rows {rows}: {measured.mean_ms[0]:.0f} and {measured.mean_ms[1]:.0f} ms an update, "
        f"{measured.busy():.0%} of two tracks",
        flush=True,
    )
    return measured


def raised(plain: Measured, share: float, seconds: int) -> tuple[Rows, Costs]:
    """Rows that make the tracks that busy, and what an update of so many costs.

    The first guess has a run of its own: the busier the machine, the more an update takes.
    """
    guess = _times(plain.rows, plain.factor(share))
    measured = measure(guess, seconds)
    tried, more_busy = guess[1] / plain.rows[1], measured.busy() - plain.busy()
    if abs(more_busy) > 0.05:  # far enough apart for a line through both
        factor = 1 + (tried - 1) * (share - plain.busy()) / more_busy
    else:
        factor = tried * measured.factor(share)
    rows = _times(plain.rows, factor)
    return rows, measured.declared(rows[1] / guess[1])


def _times(rows: Rows, factor: float) -> Rows:
    """Both kinds alike; a hundred rows at least."""
    factor = max(factor, 100 / min(rows))
    return round(rows[0] * factor), round(rows[1] * factor)


def _of_kind(costs_ms: Costs, table: str) -> int:
    return costs_ms[0] if is_short(table) else costs_ms[1]


def _in_a_process(kind: str, rows: Rows, seconds: int, *more: str, capture: bool = False) -> str:
    """A process and a JVM of its own for each run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--here", folder, "--kind", kind, "--seconds", str(seconds)]
        command += ["--rows", *map(str, rows), *more]
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE if capture else None)
        return done.stdout or ""


def runs(arguments: argparse.Namespace) -> None:
    rows: Rows = tuple(arguments.rows)
    needs_costs = arguments.only != "streaming" or any(arguments.busy)
    plain = measure(rows, arguments.calibration) if needs_costs else None
    for share in arguments.busy:
        raised_rows, costs_ms = rows, (0, 0)
        if plain is not None:
            costs_ms = plain.declared()
            if share:
                raised_rows, costs_ms = raised(plain, share, arguments.calibration)
        if arguments.only != "streaming":
            for policy in arguments.policy:
                more = ["--policy", policy, "--costs", *map(str, costs_ms)]
                _in_a_process("freshline", raised_rows, arguments.seconds, *more)
        if arguments.only != "freshline":
            _in_a_process("streaming", raised_rows, arguments.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument(
        "--rows", type=int, nargs=2, default=[8_000, 100_000], help="of a short and a long file"
    )
    parser.add_argument(
        "--busy",
        type=float,
        nargs="+",
        default=[0.0, 0.85],
        metavar="SHARE",
        help="raise the rows until two tracks are that busy; 0: leave them (default: both 0 and 0.85)",
    )
    parser.add_argument("--policy", nargs="+", default=["edf"])
    parser.add_argument("--only", choices=["freshline", "streaming"])
    parser.add_argument("--calibration", type=int, default=45, metavar="SECONDS", help="of each short run")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--costs", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows: Rows = tuple(arguments.rows)
    if arguments.kind == "calibration":
        calibration(arguments.here, rows, arguments.seconds)
    elif arguments.kind == "freshline":
        freshline(arguments.here, rows, arguments.policy[0], arguments.seconds, tuple(arguments.costs))
    elif arguments.kind == "streaming":
        streaming(arguments.here, rows, arguments.seconds)
    else:
        runs(arguments)


if __name__ == "__main__":
    main()
