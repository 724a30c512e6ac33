"""Paper 001's feeds at a hundredth of its time, live: Freshline and plain Structured Streaming side by side.

Seven feeds every 3 s (8,000 rows of timestamp, long, string) and seven every 9 s (100,000 rows), three nested
sha2 over the string, two tracks; four of the first seven feeds are down from second 50 to 100. Once as it is,
and once with so many rows that two tracks are 85 % busy; what a file costs is found by short runs beforehand.

    .venv/bin/python benchmarks/live_outage.py                 # 300 s each
    .venv/bin/python benchmarks/live_outage.py --seconds 150 --only freshline --busy 0.85
    .venv/bin/python benchmarks/live_outage.py --busy 0 --policy edf aus aus-slack prp --runs 3
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

from freshline.base.duration import SECOND
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.outages.live_outage import HASHED, ROWS, TRACKS, freshline, run
from freshline_lab.experiments.outages.live_verdict import FileCosts, TableVerdict, healthy, judge, show
from freshline_lab.experiments.outages.outage_feeds import (
    DOWN,
    LONG,
    RATES,
    SHORT,
    CopiedFeeds,
    Rows,
    generating,
    is_short,
    specs,
    whole_period,
)

# Declared costs are what 19 of 20 updates took when all was warm and all tracks were busy, and a little more.
# But they are not to overload the tracks on paper, or no policy could promise anything: up to a share of
# them, or half of what the average leaves free.
HEADROOM: Final = 1.1
DECLARED_MAX: Final = 0.85
GUESSES_MAX: Final = 4
NEAR_ENOUGH: Final = 0.04  # of the share asked for
RECORD: Final = "record.json"


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
    with Noise() as noise, generating(CopiedFeeds(feeds, folder / "landing", start)) as generator:
        time.sleep(max(0.0, (start + seconds * SECOND) / SECOND - time.time()))
    end = time.time_ns() // 1_000
    loads = {name: list(_batches(query.recentProgress)) for name, query in queries.items()}
    session.sparkContext.setLogLevel("OFF")  # batches that are cut short here are no errors
    for query in queries.values():
        query.stop()
    session.stop()
    verdicts = judge(loads, feeds, generator, start, end)
    show(f"structured streaming, rows {rows}", verdicts, None, noise.sentence(start / SECOND))
    write_record(folder, "structured streaming", verdicts)


def _batches(progress: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    for batch in progress:
        loaded = batch["observedMetrics"].get("loaded")
        if loaded is not None and loaded["newest"] is not None:
            begun = datetime.fromisoformat(batch["timestamp"]).timestamp()
            ended = begun + batch["durationMs"]["triggerExecution"] / 1_000
            yield round(ended * SECOND), loaded["newest"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an update costs with so many rows, short and long: on average, and 19 of 20 at most."""

    rows: Rows
    mean_ms: tuple[float, float]
    high_ms: tuple[float, float]

    def busy(self) -> float:
        """Which share of the tracks this takes."""
        return sum(mean * rate for mean, rate in zip(self.mean_ms, RATES, strict=True)) / 1_000 / TRACKS

    def factor(self, share: float) -> float:
        """How many times the rows would take that share, if cost is a start-up and so much a row."""
        slope = (self.mean_ms[1] - self.mean_ms[0]) / (self.rows[1] - self.rows[0])
        start_up = self.mean_ms[0] - slope * self.rows[0]
        by_row = slope * sum(rows * rate for rows, rate in zip(self.rows, RATES, strict=True))
        return (share * TRACKS * 1_000 - start_up * sum(RATES)) / by_row

    def declared(self) -> FileCosts:
        """The costs to declare."""
        highs = [high * HEADROOM for high in self.high_ms]
        asked = sum(high * rate for high, rate in zip(highs, RATES, strict=True)) / 1_000 / TRACKS
        most = min(1.0, max(DECLARED_MAX, (1 + min(1.0, self.busy())) / 2) / asked)
        short, long = (round(high * most) for high in highs)
        return short, long


def calibration(folder: Path, rows: Rows, seconds: int) -> None:
    """A run without an outage that has a backlog all the time; its first half is Java's warming up.

    The files of as many seconds wait when it begins, and go one a job: so all tracks are busy throughout, as
    they are after an outage.
    """
    backlog_s = -(-seconds // LONG) * LONG
    costs_ms = (SHORT * 1_000, LONG * 1_000)
    ran = run(folder, specs(rows, down=False), "edf", seconds, costs_ms, backlog_s, batches=False)
    warm = [update for update in ran.updates if update.start > ran.start + (ran.end - ran.start) // 2]
    kinds = [
        [(update.end - update.start) / 1_000 for update in warm if is_short(update.table) == short]
        for short in (True, False)
    ]
    record = {"mean_ms": [mean(kind) for kind in kinds], "high_ms": [_high(kind) for kind in kinds]}
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def _high(costs_ms: list[float]) -> float:
    """What 19 of 20 stay below."""
    return sorted(costs_ms)[len(costs_ms) * 19 // 20]


def measure(rows: Rows, seconds: int) -> Measured:
    said = _in_a_process("calibration", rows, seconds)
    measured = Measured(rows, tuple(said["mean_ms"]), tuple(said["high_ms"]))
    print(
        f"calibration, rows {rows}: {measured.mean_ms[0]:.0f} and {measured.mean_ms[1]:.0f} ms an update, "
        f"{measured.busy():.0%} of two tracks",
        flush=True,
    )
    return measured


def raised(plain: Measured, share: float, seconds: int) -> tuple[Rows, FileCosts]:
    """Rows that make the tracks that busy, and what an update of so many costs.

    Each guess has a run of its own, for the busier the machine, the more an update takes; the next one lies
    on the line through the two that came closest.
    """
    tried = [plain]
    guess = _times(plain.rows, plain.factor(share))
    for _ in range(GUESSES_MAX):
        tried.append(measure(guess, seconds))
        tried.sort(key=lambda measured: abs(measured.busy() - share))
        best, other = tried[:2]
        if abs(best.busy() - share) <= NEAR_ENOUGH or best.busy() == other.busy():
            break
        slope = (other.rows[1] - best.rows[1]) / (other.busy() - best.busy())
        guess = _times(plain.rows, (best.rows[1] + slope * (share - best.busy())) / plain.rows[1])
    return tried[0].rows, tried[0].declared()


def _times(rows: Rows, factor: float) -> Rows:
    """Both kinds alike; a hundred rows at least."""
    factor = max(factor, 100 / min(rows))
    return round(rows[0] * factor), round(rows[1] * factor)


def write_record(folder: Path, name: str, verdicts: Sequence[TableVerdict]) -> None:
    """What the table at the end has of a run."""
    late = [verdict.caught_up_s for verdict in verdicts[:4]]
    record = {
        "name": name,
        "lag_max": max(verdict.lag_max for verdict in healthy(verdicts)),
        "staleness_max": max(verdict.staleness_max for verdict in healthy(verdicts)),
        "late_s": [None if at_s is None else at_s - DOWN[1] for at_s in late],
    }
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def side_by_side(records: Sequence[Mapping[str, Any]]) -> None:
    """All runs in one table."""
    print("\n| | worst lag of healthy tables (periods) | worst staleness | late tables back after (s) |")
    print("|---|---|---|---|")
    for record in records:
        back = ", ".join("not back" if at_s is None else f"{at_s:.0f}" for at_s in record["late_s"])
        lag, staleness = record["lag_max"], record["staleness_max"]
        print(f"| {record['name']} | {lag:.2f} | {staleness:.2f} | {back} |", flush=True)


def _in_a_process(kind: str, rows: Rows, seconds: int, *more: str) -> dict[str, Any]:
    """A process and a JVM of its own for each run; what it leaves as its record."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--here", folder, "--kind", kind, "--seconds", str(seconds)]
        command += ["--rows", *map(str, rows), *more]
        subprocess.run(command, check=True)
        record: dict[str, Any] = json.loads((Path(folder) / RECORD).read_text(encoding="utf-8"))
        return record


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
        records = []
        if arguments.only != "streaming":
            for policy in arguments.policy * arguments.runs:
                more = ["--policy", policy, "--costs", *map(str, costs_ms)]
                records.append(_in_a_process("freshline", raised_rows, arguments.seconds, *more))
        if arguments.only != "freshline":
            records.append(_in_a_process("streaming", raised_rows, arguments.seconds))
        side_by_side(records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rows", type=int, nargs=2, default=ROWS, help="of a short and a long file")
    parser.add_argument(
        "--busy",
        type=float,
        nargs="+",
        default=[0.0, 0.85],
        metavar="SHARE",
        help="raise the rows until two tracks are that busy; 0: leave them (default: both 0 and 0.85)",
    )
    parser.add_argument("--policy", nargs="+", default=["edf"])
    parser.add_argument("--runs", type=int, default=1, help="of each policy, in turns")
    parser.add_argument("--only", choices=["freshline", "streaming"])
    parser.add_argument("--calibration", type=int, default=90, metavar="SECONDS", help="of each short run")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--costs", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows: Rows = tuple(arguments.rows)
    if arguments.kind == "calibration":
        calibration(arguments.here, rows, arguments.seconds)
    elif arguments.kind == "freshline":
        policy = arguments.policy[0]
        outcome = freshline(arguments.here, rows, policy, arguments.seconds, tuple(arguments.costs))
        verdicts = [TableVerdict(**table) for table in outcome["tables"]]
        write_record(arguments.here, policy, verdicts)
    elif arguments.kind == "streaming":
        streaming(arguments.here, rows, arguments.seconds)
    else:
        runs(arguments)


if __name__ == "__main__":
    main()
