"""What an update costs beside the bare Spark job, and beside a Structured Streaming micro-batch.

For every file in turn: bare read-transform-write, then Freshline's update from its start to its commit being
visible, in the same session. Then several tracks update at once, and memory is looked at. Then Structured
Streaming takes the same files, one a micro-batch, in a plain session and process of its own.

    .venv/bin/python benchmarks/update_overhead.py
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from freshline.definitions.load import loads
from freshline.landing.discovery import Discovery
from freshline.live.tables.file_to_load import FileToLoad
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.updater import Updater
from freshline.spark.session.session import open_session
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable
from freshline.testing.network import FeedSpec, Generator

HASHED = "sha2(sha2(sha2(text, 256), 256), 256) AS text"
WARM_UP = 10
ASKED = {8_000: 0.75, 100_000: 0.9}  # of the bare Spark job, by rows


def project(spec: FeedSpec) -> str:
    feed = f'format: csv, schema: "{spec.schema}", timestamp: ts, period: 3s'
    select = f"SELECT ts, number, {HASHED} FROM records"
    return (
        "name: overhead\npools: {updates: {tracks: 1}}\n"
        f"feeds: {{records: {{path: landing/records, {feed}}}}}\n"
        f'tables: {{records: {{feed: records, select: "{select}"}}}}\n'
    )


def bare(session: SparkSession, spec: FeedSpec, file: Path, target: Path) -> float:
    started = time.perf_counter()
    frame = session.read.schema(spec.schema).option("header", True).csv(str(file))
    frame.selectExpr("ts", "number", HASHED).write.parquet(str(target))
    return time.perf_counter() - started


def updates(session: SparkSession, spec: FeedSpec, folder: Path) -> Iterator[float]:
    """One update after the other, as a track does them."""
    warehouse = loads(project(spec))
    found = schemas(session, warehouse)
    schema = to_arrow_schema(found["records"], timezone="UTC")
    stored = StoredTable.open_or_create(folder / "tables" / "records", "records", schema, "ts")
    root = folder / "landing" / "records"
    landed = (
        Discovery(warehouse.feeds["records"], root, lambda name: None).scan(time.time_ns() // 1_000).landed
    )
    updater = Updater(warehouse, {"records": stored}, found, {"records": root})
    freshness = 0
    for number, file in enumerate(landed, start=1):
        assert file.timestamp_us is not None
        consumed = ConsumedFile(file.name, file.size, file.mtime_ns, file.digest)
        facts = FileFacts(consumed, file.records, file.oldest_us, file.newest_us)
        loaded = (FileToLoad(file.timestamp_us, file.name, facts),)
        load = Load("records", number, freshness, file.timestamp_us, loaded)
        started = time.perf_counter()
        updater.run(session, load)
        yield time.perf_counter() - started
        freshness = file.timestamp_us


def micro_batches(session: SparkSession, spec: FeedSpec, folder: Path) -> list[float]:
    """triggerExecution of each micro-batch, one file a batch."""
    frame = (
        session.readStream.schema(spec.schema)
        .option("header", True)
        .option("maxFilesPerTrigger", 1)
        .csv(str(folder / "landing" / "records"))
        .selectExpr("ts", "number", HASHED)
    )
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "streamed"))
    )
    query.awaitTermination()
    return [
        progress["durationMs"]["triggerExecution"] / 1_000
        for progress in query.recentProgress
        if progress["numInputRows"]
    ]


def java_process(session: SparkSession) -> int:
    gateway = session.sparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)


def memory_mb(process: int) -> float:
    """What a process has in memory now."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1_024


def all_tracks(session: SparkSession, spec: FeedSpec, folder: Path, tracks: int) -> tuple[float, float]:
    """The most memory that Python and Java have while so many tracks update, each a table of its own."""
    paths = sorted((folder / "landing" / "records").iterdir())

    def track(number: int) -> None:
        own = folder / f"track-{number}"
        (own / "landing" / "records").mkdir(parents=True)
        for path in paths:
            shutil.copyfile(path, own / "landing" / "records" / path.name)
        for _ in updates(session.newSession(), spec, own):
            pass

    java = java_process(session)
    most = [0.0, 0.0]
    with ThreadPoolExecutor(tracks) as executor:
        running = [executor.submit(track, number) for number in range(tracks)]
        while not all(future.done() for future in running):
            most = [max(most[0], memory_mb(os.getpid())), max(most[1], memory_mb(java))]
            time.sleep(0.05)
    for future in running:
        future.result()
    return most[0], most[1]


def compare(session: SparkSession, rows: int, files: int, tracks: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = FeedSpec("records", "csv", 3, rows)
        now = time.time_ns() // 1_000
        Generator([spec], folder / "landing", 0, now - (files + 1) * spec.period_us).due(now)
        paths = sorted((folder / "landing" / "records").iterdir())
        bares, ours = [], []
        for number, (path, update) in enumerate(zip(paths, updates(session, spec, folder), strict=True)):
            ours.append(update)
            bares.append(bare(session, spec, path, folder / "bare" / str(number)))
        java = java_process(session)
        before = memory_mb(os.getpid()), memory_mb(java)
        most = all_tracks(session, spec, folder, tracks)
        session.stop()
        # Another process: what one session sets, the next one of the same JVM finds.
        command = [sys.executable, __file__, "--streaming", name, "--rows", str(rows)]
        said = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        batches = json.loads(said.stdout.splitlines()[-1])
        ours_s, bare_s, batch_s = (median(times[WARM_UP:]) for times in (ours, bares, batches))
        print(
            f"{rows:>7,} rows: update {ours_s * 1000:.0f} ms, bare Spark {bare_s * 1000:.0f} ms, "
            f"micro-batch {batch_s * 1000:.0f} ms; ratios {ours_s / bare_s:.2f} "
            f"(at most {ASKED.get(rows, 1.0)} is asked) and {ours_s / batch_s:.2f} (at most 0.7); "
            f"memory of one track and of {tracks}: Python {before[0]:.0f} and {most[0]:.0f} MB, "
            f"Java {before[1]:.0f} and {most[1]:.0f} MB",
            flush=True,
        )


def stream(folder: Path, rows: int) -> None:
    session = SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR").getOrCreate()
    print(json.dumps(micro_batches(session, FeedSpec("records", "csv", 3, rows), folder)))
    session.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--rows", type=int, nargs="+", default=[8_000, 100_000])
    parser.add_argument("--tracks", type=int, default=4)
    parser.add_argument("--streaming", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.streaming:
        stream(arguments.streaming, arguments.rows[0])
        return
    for rows in arguments.rows:
        compare(open_session("overhead", "local[2]"), rows, arguments.files, arguments.tracks)


if __name__ == "__main__":
    main()
