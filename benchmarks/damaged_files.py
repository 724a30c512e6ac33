"""Thousands of damaged data files: each is refused, or Spark reads the records that were found in it.

Files of text are found first, and those that are taken are read by Spark, a thousand in two jobs. Parquet
files have damaged footers; of those that are taken some are read by Spark one by one, and one that fails must
fail in a way that puts it into quarantine. Other records than were found are what an update refuses; of text
there must be none.

    .venv/bin/python benchmarks/damaged_files.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from freshline.definitions.sections.feed_entry import FileFormat
from freshline.definitions.sections.feeds import Feed, Landing
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.record_reader import RecordReader
from freshline.landing.records import FileRecords, UnreadableFile
from freshline.spark.errors import spark_ended
from freshline.spark.loading.frames import read_files
from freshline.spark.session.session import open_session
from freshline_lab.campaigns.kills.damage import SCHEMA, write_files
from freshline_lab.campaigns.kills.record_agreement import SparkRead, disagreements, read_by_spark

BATCH = 1_000


def find(reader: RecordReader, paths: list[Path], refused: Counter[str]) -> dict[Path, FileRecords]:
    found = {}
    for path in paths:
        try:
            found[path] = reader.read(path)
        except UnreadableFile as error:
            refused["crashed the reader" if "ended with SIG" in error.reason else "refused when found"] += 1
    return found


def read_alone(
    session: SparkSession, feed: Feed, paths: list[Path], refused: Counter[str]
) -> dict[Path, SparkRead]:
    """What Spark reads of each Parquet file that it can read; the others it must outlive."""
    read = {}
    for path in paths:
        try:
            records = read_files(session, feed, [str(path)])
            rows = records.selectExpr("*", "unix_micros(ts) AS newest").collect()
        except Exception as error:  # whatever its name, a file that fails alone is put aside
            refused["refused when loaded"] += 1
            ended = spark_ended(session)
            if ended is not None:
                raise ended from error
            continue
        newest = [row.newest for row in rows if row.newest is not None]
        read[path] = SparkRead(len(rows), max(newest, default=None))
    return read


def run(session: SparkSession, format: FileFormat, folder: Path, seeds: range, spark_files: int) -> int:
    """How many files are loaded wrongly."""
    landing = Landing(path="in", format=format, schema=SCHEMA, timestamp="ts")
    feed = Feed("damaged", "files", 1_000_000, landing=landing)
    process = ParquetProcess() if format == "parquet" else None
    reader = RecordReader(landing, process)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for first in range(seeds.start, seeds.stop, BATCH):
        paths = write_files(folder, format, range(first, min(first + BATCH, seeds.stop)))
        found = find(reader, paths, outcomes)
        if format == "parquet":
            taken = list(found)[: max(0, spark_files - outcomes["read by Spark"])]
            read = read_alone(session, feed, taken, outcomes)
        else:
            read = read_by_spark(session, feed, list(found))
            outcomes["refused when loaded"] += len(found) - len(read)
        outcomes["read by Spark"] += len(read)
        wrong += disagreements(found, read)
        for path in paths:
            if not any(str(path) in line for line in wrong):
                path.unlink()
    if process is not None:
        process.close()
    print(f"{format}: {len(seeds):,} files, {dict(outcomes)}, {len(wrong)} wrong", flush=True)
    for line in wrong[:20]:
        print("  " + line)
    return len(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=5_000, help="of each format")
    parser.add_argument("--seed", type=int, default=1_000_000, help="the first")
    parser.add_argument("--formats", nargs="+", default=["csv", "json", "parquet"])
    parser.add_argument("--parquet-by-spark", type=int, default=100, help="so many are read by Spark too")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.files)
    session = open_session("damaged files", "local[2]")
    with tempfile.TemporaryDirectory() as name:
        wrong = sum(
            run(session, format, Path(name) / format, seeds, arguments.parquet_by_spark)
            for format in arguments.formats
        )
    session.stop()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
