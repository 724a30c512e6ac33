"""Memory that a run keeps for each loaded file that stays in its landing directory, without Spark.

So many small files wait. The run's own watch, kernel, tracks, journal, ledger and Delta log take them, and
only their rows are not written. It is noted how much memory the process has before, at most, and once all
files are loaded; with `--trace` also what Python itself keeps, by the line that made it.

    .venv/bin/python benchmarks/file_memory.py                        # 100,000 files
    .venv/bin/python benchmarks/file_memory.py --files 20000 --trace  # what is kept, by line; slower
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

import pyarrow as pa

from freshline.base.clock import clock
from freshline.base.free_memory import share_arenas
from freshline.definitions.load import loads
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.update import Update
from freshline.live.loop.driver import LiveDriver, LoopHooks
from freshline.live.loop.journal import journal_of
from freshline.live.loop.kinds import JobKind
from freshline.live.loop.messages import Inbox
from freshline.live.loop.tracks import Tracks
from freshline.live.tables.file_to_load import files_to_load
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.housekeeping import Housekeeper, kept_tables
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.tables.run_records import RunRecords
from freshline.live.tables.update_worker import load_of
from freshline.planning.plan.make import make_plan
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.control.history import History
from freshline.storage.control.quarantine import Quarantine
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable

PROJECT: Final = """\
name: kept
pools: {updates: {tracks: 1}}
feeds:
  events: {path: events, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 1s}
tables:
  events: {feed: events, cost: {startup: 100ms, rate: 0.0005}}
"""
SCHEMA: Final = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
MIB: Final = 1 << 20


def write(folder: Path, files: int) -> None:
    folder.mkdir()
    began = time.time() - files
    for number in range(files):
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began + number))
        (folder / f"events-{number:08d}.csv").write_text(f"ts,n\n{stamp},{number}\n", encoding="utf-8")


class Committer:
    """Commits a job's files without rows."""

    def __init__(self, table: StoredTable, books: LoadRecords) -> None:
        self._table = table
        self._books = books

    def run(self, job: Update) -> LoadResult:
        consumed = tuple(file.facts.consumed for file in files_to_load(job.files))
        version = self._table.commit(None, job.loaded_to, consumed, {})
        result = LoadResult(job.loaded_to, len(consumed), 0, version, consumed, computed=False)
        self._books.enter(load_of(job), result, 1)
        return result


class Stages(LoopHooks):
    """Says how much memory there is whenever a stage is over; stops the loop after the last."""

    def __init__(
        self, files: int, quiet_s: float, keeper: RunRecords, housekeeper: Housekeeper, trace: bool
    ) -> None:
        self._files = files
        self._quiet_s = quiet_s
        self._keeper = keeper
        self._housekeeper = housekeeper
        self._trace = trace
        self._before = _resident()
        self._most = 0
        self._until: float | None = None
        self.stop: Callable[[], None] = lambda: None

    def tick(self, now: int, kernel: Kernel) -> None:
        self._keeper.look(now, kernel)
        self._housekeeper.consider(now, kernel)
        self._most = max(self._most, _resident())
        rows = self._keeper.observation.tables["events"].rows
        if rows < self._files:
            return
        if self._until is None:
            self._until = time.monotonic() + self._quiet_s
        elif time.monotonic() >= self._until:
            self._until = inf
            self._tell()
            self.stop()

    def _tell(self) -> None:
        kept = _resident() - self._before
        print(
            f"{self._files:,} files: {self._before / MIB:.0f} MiB before, {self._most / MIB:.0f} at most, "
            f"{_resident() / MIB:.0f} after: {kept / self._files:,.0f} bytes a file kept, "
            f"{(self._most - self._before) / self._files:,.0f} at most"
        )
        if self._trace:
            gc.collect()
            size, most = tracemalloc.get_traced_memory()
            print(f"Python: {size / self._files:,.0f} bytes a file kept, {most / self._files:,.0f} at most")
            for line in tracemalloc.take_snapshot().statistics("lineno")[:25]:
                print(f"  {line.size / self._files:>8.1f} {line.count / self._files:>6.2f}  {line.traceback}")


def _resident() -> int:
    lines = Path(f"/proc/{os.getpid()}/status").read_text(encoding="utf-8").splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kilobytes) * 1_024


def run(folder: Path, files: int, quiet_s: float, trace: bool) -> None:
    warehouse = loads(PROJECT)
    plan, started = make_plan(warehouse), clock()
    stored = StoredTable.open_or_create(folder / "table", "events", SCHEMA, "ts")
    ledger, history = Ledger(folder / "ledger.sqlite"), History(folder / "history.sqlite")
    ledger.catch_up("events", stored)
    feeds = LandingFeeds(warehouse, {"events": folder / "events"})
    books = LoadRecords(feeds, ledger, history, folder / "archive")
    keeper = RunRecords(warehouse, plan, "run", started, print)
    inbox = Inbox()
    refusals = QuarantineQueue(Quarantine(folder / "quarantine"), keeper.notes, inbox.post)
    watch = FileWatch(feeds, books, refusals, keeper.notes)
    keeper.judge.on_loaded = watch.loaded
    tracks = Tracks(1, {Update: JobKind(lambda track: Committer(stored, books), keeper.judge)}, inbox.post)
    locks = {"events": threading.Lock()}
    housekeeper = Housekeeper(lambda: kept_tables({"events": stored}, locks, ledger), (), keeper.notes.note)
    if trace:
        tracemalloc.start()
    hooks = Stages(files, quiet_s, keeper, housekeeper, trace)
    with (folder / "journal").open("w", encoding="utf-8") as log:
        none: dict[str, int | None] = {"events": None}
        journal = journal_of(log, "run", started, none, plan, unknown=(), batches=True, node=None)
        kernel = assemble(plan, started, none)
        driver = LiveDriver(kernel, inbox, tracks, journal, keeper.observation, hooks)
        watch.start(inbox.post)
        hooks.stop = driver.stop
        driver.run()
        watch.stop()
    ledger.close()
    history.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--quiet", type=float, default=10, help="seconds after the last load")
    parser.add_argument("--trace", action="store_true")
    arguments = parser.parse_args()
    share_arenas()
    with tempfile.TemporaryDirectory() as name:
        write(Path(name) / "events", arguments.files)
        run(Path(name), arguments.files, arguments.quiet, arguments.trace)


if __name__ == "__main__":
    main()
