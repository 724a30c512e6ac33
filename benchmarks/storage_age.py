"""Whether a table gets slower with age: opening it and committing to it after 100 and after 10,000 commits.

Both are made of real commits of small Parquet files, with the housekeeping that a running warehouse does
between updates, and the ledger of what was consumed. All of it happens within minutes, so their logs still
hold every file that was ever replaced; the log of a table that is as old as it looks holds those of an hour.

    .venv/bin/python benchmarks/storage_age.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Lock
from types import SimpleNamespace
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from freshline.definitions.duration import SECOND
from freshline.kernel.kernel import Kernel
from freshline.live.housekeeping import Housekeeper
from freshline.storage.delta import Consumed, StoredTable
from freshline.storage.ledger import Ledger

SCHEMA: Final = pa.schema([("ts", pa.timestamp("us", "UTC")), ("number", pa.int64()), ("text", pa.string())])
PERIOD_US: Final = 3 * SECOND
ROWS: Final = 20
# All that housekeeping asks of the kernel: nothing runs, and nothing will for long.
IDLE: Final = cast(
    Kernel, SimpleNamespace(tasks=(), pools=(SimpleNamespace(idle=(0,)),), wake_at=sys.maxsize)
)
ASKED: Final = 1.5


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

    def commit(self, folder: str) -> None:
        """An update becomes visible, and the ledger notes its file."""
        number = self.table.sequence + 1
        consumed = [
            Consumed(f"records-{number:08d}.csv", 1_000, self._begun_us * 1_000 + number, f"{number:064x}")
        ]
        freshness = self._begun_us + number * PERIOD_US
        version = self.table.commit(folder, freshness, consumed, {"table": "records", "job": number})
        self._ledger.record("records", version, consumed)

    def age(self, commits: int) -> None:
        """So many updates, and between them the housekeeping of an idle warehouse."""
        keeper = Housekeeper(
            {"records": self.table},
            {"records": Lock()},
            self._ledger,
            [self._ledger.path],
            lambda _, trouble: print(trouble, flush=True),
        )
        for _ in range(commits):
            self.commit(self.write())
            keeper.consider(self._begun_us, IDLE)
            keeper.finish(60)


def timed_ms(work: Callable[..., Any], *arguments: Any) -> float:
    started = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - started) * 1_000


def reopening_ms(ageing: AgeingTable) -> float:
    ageing.close()
    return timed_ms(ageing.open)


def committing_ms(ageing: AgeingTable) -> float:
    return timed_ms(ageing.commit, ageing.write())


def compare(what: str, young: list[float], old: list[float]) -> None:
    ratio = median(old) / median(young)
    print(
        f"{what}: {median(young):.1f} ms young, {median(old):.1f} ms old; ratio {ratio:.2f} "
        f"(at most {ASKED} is asked)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--commits", type=int, nargs=2, default=[100, 10_000], help="of the young and the old"
    )
    parser.add_argument("--rounds", type=int, default=100, help="of measuring each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tables = []
        for commits in arguments.commits:
            ageing = AgeingTable(Path(name) / str(commits))
            took_s = timed_ms(ageing.age, commits) / 1_000
            print(
                f"{commits:,} commits in {took_s:.0f} s; {len(ageing.table.files)} live files, "
                f"{len(list((ageing.table.path / '_delta_log').iterdir()))} files in the log",
                flush=True,
            )
            tables.append(ageing)
        for what, measure in (("open", reopening_ms), ("commit", committing_ms)):
            # In turns, so that whatever else the machine does meets both alike.
            rounds = [[measure(ageing) for ageing in tables] for _ in range(arguments.rounds)]
            young, old = ([times[which] for times in rounds] for which in (0, 1))
            compare(what, young, old)
        for ageing in tables:
            ageing.close()


if __name__ == "__main__":
    main()
