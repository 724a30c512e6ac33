"""Memory of a running warehouse over many updates, the driver's and Spark's JVM's, and what idling costs.

Small files of some feeds wait to be loaded, enough for so many updates, and keep all tracks busy: a job takes
one file, and a derived table follows each feed. Files are left where they landed. Every twentieth of the run
it is noted how much memory the two processes have, and how much of the JVM's heap is in use after a garbage
collection. Then what is left is loaded, nothing comes any more, and it is noted how much processor time they
take all the same.

    .venv/bin/python benchmarks/memory.py                                  # 1,000 updates on 2 tables
    .venv/bin/python benchmarks/memory.py --tables 20 --updates 20000 --seconds 5400
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from freshline.base.duration import SECOND
from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.table_status import TABLES
from freshline.spark.session.session import open_session
from freshline.testing.network import FeedSpec, Generator

WARM_UP: Final = 1_000
SETTLE_S: Final = 15
MIB: Final = 1 << 20
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def specs(tables: int) -> list[FeedSpec]:
    """A feed for every second table; the others are derived from them."""
    return [FeedSpec(f"packets{number}", "csv", 1, 100, kind="packets") for number in range(tables // 2)]


def project(feeds: list[FeedSpec]) -> str:
    """One file a job, whatever waits."""
    lines = ["name: memory", "pools: {updates: {tracks: 2, policy: edf-strict}}", "feeds:"]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: csv, schema: "{spec.schema}", timestamp: ts, '
        "period: 1s}"
        for spec in feeds
    ]
    lines.append("tables:")
    for spec in feeds:
        lines += [
            f"  {spec.name}: {{feed: {spec.name}, cost: {{startup: 1s}}, "
            f'select: "SELECT ts, upper(src) AS src, bytes FROM {spec.name}"}}',
            f"  of_{spec.name}: {{period: 1s, cost: {{startup: 1s}}, "
            f'sql: "SELECT ts, src, sum(bytes) AS bytes FROM {spec.name} GROUP BY ts, src"}}',
        ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was in use after so many updates, in bytes."""

    updates: int
    driver: int
    jvm: int
    heap: int


class Sampler:
    """Takes a sample whenever so many more updates have been made."""

    def __init__(self, session: SparkSession, every: int) -> None:
        jvm: Any = session.sparkContext._jvm
        self._jvm = jvm
        self.jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        self._every = every
        self.samples: list[Sample] = []

    def see(self, status: WarehouseStatus) -> int:
        """How many updates there have been."""
        updates = sum(table.jobs for table in status.rows(TABLES))
        if updates < (len(self.samples) + 1) * self._every:
            return updates
        sample = Sample(updates, _resident(os.getpid()), _resident(self.jvm_pid), self._heap())
        self.samples.append(sample)
        print(
            f"{updates:>8,} {sample.driver / MIB:>9.0f} {sample.jvm / MIB:>9.0f} {sample.heap / MIB:>9.1f}",
            flush=True,
        )
        return updates

    def _heap(self) -> int:
        # Updates are running meanwhile: the least of a few is what stays. No such collection in Python, which
        # would free what Python forgot to, and hide it.
        return min(self._in_use() for _ in range(4))

    def _in_use(self) -> int:
        self._jvm.java.lang.System.gc()
        bean = self._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        return int(bean.getHeapMemoryUsage().getUsed())


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kilobytes) * 1_024


def growth(samples: list[Sample]) -> str:
    """From when everything is warm to the end."""
    first = next((sample for sample in samples if sample.updates >= WARM_UP), samples[0])
    last = samples[-1]
    return (
        f"growth from update {first.updates:,} to {last.updates:,}: driver {last.driver / first.driver:.2f}, "
        f"JVM {last.jvm / first.jvm:.2f}, its heap in use {last.heap / first.heap:.2f} times"
    )


def processor_s(pid: int) -> float:
    """Processor time that a process has had so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def idle(runner: Runner, jvm_pid: int, seconds: int) -> str:
    """How much of a core the run takes while nothing comes.

    From a little after its beginning on: what is there is compared with the ledger first.
    """
    begun: list[tuple[float, float, float]] = []
    settled_at = time.monotonic() + SETTLE_S

    def now() -> tuple[float, float, float]:
        return time.monotonic(), processor_s(os.getpid()), processor_s(jvm_pid)

    def look(status: WarehouseStatus) -> None:
        if not begun and time.monotonic() >= settled_at:
            begun.append(now())

    runner.on_status = look
    runner.run((SETTLE_S + seconds) * SECOND)
    took, driver_s, jvm_s = (after - before for after, before in zip(now(), begun[0], strict=True))
    driver, jvm = 100 * driver_s / took, 100 * jvm_s / took
    return f"idle for {took:.0f} s: driver {driver:.2f} %, JVM {jvm:.2f} % of a core (less than 2 is asked)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=2, help="an even number")
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=600, help="to give up after")
    parser.add_argument("--idle", type=int, default=60, help="seconds to idle for")
    arguments = parser.parse_args()
    feeds = specs(arguments.tables)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "freshline.yml").write_text(project(feeds), encoding="utf-8")
        now = time.time_ns() // 1_000
        # Enough for tables on files alone: the others may load several files at a time.
        begin = now - (arguments.updates // len(feeds) + 1) * feeds[0].period_us
        Generator(feeds, folder / "landing", 0, begin).due(now)
        session = open_session("memory", "local[2]")
        sampler = Sampler(session, max(1, arguments.updates // 20))
        print(f"{'updates':>8} {'driver':>9} {'JVM':>9} {'heap':>9}  (MiB)", flush=True)
        try:
            warehouse = load(folder / "freshline.yml")
            storage = folder / "storage"
            with Runner(
                warehouse, folder, storage, RunOptions(session=session, drain=True, batches=False)
            ) as runner:

                def look(status: WarehouseStatus) -> None:
                    if sampler.see(status) >= arguments.updates:
                        runner.stop("that many updates are made")

                runner.on_status = look
                runner.run(arguments.seconds * SECOND)
                print(f"ended: {runner.stopped_because or 'out of time'}")
            with Runner(warehouse, folder, storage, RunOptions(session=session, drain=True)) as runner:
                runner.run()  # what is left, in batches
            with Runner(warehouse, folder, storage, RunOptions(session=session)) as runner:
                print(idle(runner, sampler.jvm_pid, arguments.idle))
        finally:
            session.stop()
    print(growth(sampler.samples))


if __name__ == "__main__":
    main()
