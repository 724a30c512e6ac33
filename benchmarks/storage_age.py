"""Whether a table gets slower with age: opening it and committing to it with 200 and with 30,000 commits in
its log, a day of an update every three seconds.

Both begin and end with real commits of small Parquet files, with the housekeeping that a running warehouse
does between updates, and the ledger of what was consumed. Those between are copies of a real one under other
names and numbers, each of which adds a file and replaces an older one.

    .venv/bin/python benchmarks/storage_age.py
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from threading import Lock
from types import SimpleNamespace
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from freshline.base.duration import SECOND
from freshline.kernel.core.kernel import Kernel
from freshline.live.tables.housekeeping import Housekeeper, KeptTable
from freshline.storage.delta import log
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable

SCHEMA: Final = pa.schema([("ts", pa.timestamp("us", "UTC")), ("number", pa.int64()), ("text", pa.string())])
PERIOD_US: Final = 3 * SECOND
ROWS: Final = 20
# All that housekeeping asks of the kernel: nothing runs, and nothing will for long.
IDLE: Final = cast(
    Kernel, SimpleNamespace(tasks=(), pools=(SimpleNamespace(idle=(0,)),), wake_at=sys.maxsize)
)
ASKED: Final = 1.2
REAL: Final = 100  # real commits, before and after those that are made up
LIVE: Final = 40
SMALL_BYTES, TARGET_BYTES = 8 << 20, 64 << 20


class AgeingTable:
    """A table with its ledger, as a runner has them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._begun_us = time.time_ns() // 1_000
        self.open()

    def open(self) -> None:
        """As a runner does when it starts."""
        self._ledger = Ledger(self._folder / "ledger.sqlite")
        self.table = StoredTable.open_or_create(self._folder / "records", "records", SCHEMA, "ts")
        self._ledger.catch_up("records", self.table)

    def close(self) -> None:
        self._ledger.close()

    def write(self) -> str:
        """What Spark does before a commit: the folder with the next update's file."""
        number = self.table.sequence + 1
        due_us = self._begun_us + number * PERIOD_US
        instants = [due_us - place for place in range(ROWS)]
        columns = [pa.array(instants, SCHEMA[0].type), pa.array(range(ROWS)), pa.array(["record"] * ROWS)]
        folder = f"data/{number:08d}"
        (self.table.path / folder).mkdir(parents=True)
        rows = pa.table(dict(zip(SCHEMA.names, columns, strict=True)))
        pq.write_table(rows, self.table.path / folder / "part-0.parquet")
        return folder

    def _consumed(self, number: int) -> ConsumedFile:
        mtime_ns = self._begun_us * 1_000 + number
        return ConsumedFile(f"records-{number:08d}.csv", 1_000, mtime_ns, f"{number:064x}")

    def commit(self, folder: str) -> None:
        """An update becomes visible, and the ledger notes its file."""
        number = self.table.sequence + 1
        consumed = [self._consumed(number)]
        freshness = self._begun_us + number * PERIOD_US
        version = self.table.commit(folder, freshness, consumed, {"table": "records", "job": number})
        self._ledger.record("records", version, consumed)

    def pretend(self, commits: int) -> None:
        """So many commits more, each like the last one."""
        first = self.table.version + 1
        last = log.commit_path(self.table.path, first - 1).read_text()
        actions = [json.loads(line) for line in last.splitlines()]
        template = {next(iter(action)): action for action in actions}
        template |= {action["txn"]["appId"]: action for action in actions if "txn" in action}
        information, add = template["commitInfo"]["commitInfo"], template["add"]["add"]
        sequence = self.table.sequence
        for place in range(commits):
            number = sequence + 1 + place
            information["timestamp"] = time.time_ns() // 1_000_000
            information[log.KEY] |= {"id": f"{number:032x}", "files": [asdict(self._consumed(number))]}
            template["freshline"]["txn"]["version"] = number
            template["freshline.freshness"]["txn"]["version"] = self._begun_us + number * PERIOD_US
            add["path"] = f"data/{number:08d}/part-0.parquet"
            lines = [*actions]
            if place >= LIVE:
                lines.append(_removal(f"data/{number - LIVE:08d}/part-0.parquet", information["timestamp"]))
            text = "\n".join(map(json.dumps, lines))
            log.commit_path(self.table.path, first + place).write_text(text + "\n")
        # The files that are live at the end must be there: they are compacted.
        source = (self.table.path / self.table.files[-1].path).read_bytes()
        for number in range(sequence + commits + 1 - LIVE, sequence + commits + 1):
            folder = self.table.path / f"data/{number:08d}"
            folder.mkdir()
            (folder / "part-0.parquet").write_bytes(source)
        DeltaTable(self.table.path).create_checkpoint()
        self.close()
        self.open()

    def age(self, commits: int) -> None:
        """So many updates, and between them the housekeeping of an idle warehouse."""
        kept = KeptTable(self.table, Lock(), "records", lambda: self._ledger.applied("records"))
        keeper = Housekeeper(
            lambda: {"records": kept}, [self._ledger.path], lambda _, trouble: print(trouble, flush=True)
        )
        for _ in range(commits):
            self.commit(self.write())
            keeper.consider(self._begun_us, IDLE)
            keeper.finish(60)


def _removal(path: str, at_ms: int) -> dict[str, Any]:
    details = {"deletionTimestamp": at_ms, "dataChange": False, "size": 1_000, "partitionValues": {}}
    return {"remove": {"path": path, "extendedFileMetadata": True, **details}}


def timed_ms(work: Callable[..., Any], *arguments: Any) -> float:
    started = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - started) * 1_000


def reopening_ms(ageing: AgeingTable) -> float:
    ageing.close()
    return timed_ms(ageing.open)


def committing_ms(ageing: AgeingTable) -> float:
    return timed_ms(ageing.commit, ageing.write())


def foreign_open_ms(ageing: AgeingTable) -> float:
    """As any other reader does, who knows of no window."""
    return timed_ms(DeltaTable, ageing.table.path)


def compare(what: str, young: list[float], old: list[float], asked: float | None) -> None:
    ratio = median(old) / median(young)
    asked_for = "" if asked is None else f" (at most {asked} is asked)"
    print(
        f"{what}: {median(young):.1f} ms young, {median(old):.1f} ms old; ratio {ratio:.2f}{asked_for}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--commits", type=int, nargs=2, default=[2 * REAL, 30_000], help="of the young and the old"
    )
    parser.add_argument("--rounds", type=int, default=100, help="of measuring each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tables = []
        for commits in arguments.commits:
            ageing = AgeingTable(Path(name) / str(commits))
            started = time.perf_counter()
            ageing.age(REAL)
            if commits > 2 * REAL:
                ageing.pretend(commits - 2 * REAL)
            ageing.age(REAL)
            # Both as housekeeping leaves a table: with few files, and a checkpoint.
            ageing.table.compact(SMALL_BYTES, TARGET_BYTES)
            ageing.table.checkpoint()
            took_s = time.perf_counter() - started
            print(
                f"{commits:,} commits in {took_s:.0f} s; {len(ageing.table.files)} live files, "
                f"{len(list((ageing.table.path / '_delta_log').iterdir()))} files in the log",
                flush=True,
            )
            tables.append(ageing)
        measures = {
            "commit": (committing_ms, ASKED),
            "open": (reopening_ms, ASKED),
            "open by another reader": (foreign_open_ms, None),
        }
        took: dict[str, list[list[float]]] = {what: [] for what in measures}
        for _ in range(arguments.rounds):
            for what, (measure, _asked) in measures.items():
                # In turns, so that whatever else the machine does meets both alike.
                took[what].append([measure(ageing) for ageing in tables])
        for what, (_measure, asked) in measures.items():
            young, old = ([times[which] for times in took[what]] for which in (0, 1))
            compare(what, young, old, asked)
        for ageing in tables:
            ageing.close()


if __name__ == "__main__":
    main()
