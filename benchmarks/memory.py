"""Memory of a running warehouse over 1,000 updates: the driver's, and that of Spark's JVM.

500 files of one feed wait to be loaded, and a derived table follows with an aggregate over each
of them, so that files, views and SQL are all in use. Every 100 updates it is noted how much memory the two
processes have, and how much of the JVM's heap is in use after a garbage collection.

    .venv/bin/python benchmarks/memory.py
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

from freshline.definitions.duration import SECOND
from freshline.definitions.load import load
from freshline.live.runner import Runner
from freshline.live.status import WarehouseStatus
from freshline.spark.session import open_session
from freshline.testing.network import FeedSpec, Generator

SPEC: Final = FeedSpec("packets", "csv", 3, 100)
WARM_UP: Final = 200
MIB: Final = 1 << 20
PROJECT: Final = f"""\
name: memory
pools: {{updates: {{tracks: 2}}}}
feeds:
  packets: {{path: landing/packets, format: csv, schema: "{SPEC.schema}", timestamp: ts, period: 3s}}
tables:
  packets:
    feed: packets
    select: "SELECT ts, upper(src) AS src, bytes FROM packets"
    cost: {{startup: 1s}}
  traffic:
    sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src"
    period: 3s
    cost: {{startup: 1s}}
"""


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
        self._jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        self._every = every
        self.samples: list[Sample] = []

    def see(self, status: WarehouseStatus) -> None:
        updates = sum(table.jobs for table in status.tables)
        if updates < (len(self.samples) + 1) * self._every:
            return
        sample = Sample(updates, _resident(os.getpid()), _resident(self._jvm_pid), self._heap())
        self.samples.append(sample)
        print(
            f"{updates:>8,} {sample.driver / MIB:>9.0f} {sample.jvm / MIB:>9.0f} {sample.heap / MIB:>9.1f}",
            flush=True,
        )

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
    first = next(sample for sample in samples if sample.updates >= WARM_UP)
    last = samples[-1]
    return (
        f"growth from update {first.updates:,} to {last.updates:,}: driver {last.driver / first.driver:.2f}, "
        f"JVM {last.jvm / first.jvm:.2f}, its heap in use {last.heap / first.heap:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=600, help="to give up after")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
        now = time.time_ns() // 1_000
        begin = now - (arguments.updates // 2 + 1) * SPEC.period_us
        Generator([SPEC], folder / "landing", 0, begin).due(now)
        session = open_session("memory", "local[2]")
        sampler = Sampler(session, max(1, arguments.updates // 10))
        print(f"{'updates':>8} {'driver':>9} {'JVM':>9} {'heap':>9}  (MiB)", flush=True)
        try:
            warehouse = load(folder / "freshline.yml")
            with Runner(warehouse, folder, folder / "storage", session=session, drain=True) as runner:
                runner.on_status = sampler.see
                runner.run(arguments.seconds * SECOND)
                print(f"ended: {runner.stopped_because or 'out of time'}")
        finally:
            session.stop()
    print(growth(sampler.samples))


if __name__ == "__main__":
    main()
