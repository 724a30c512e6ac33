"""Kills a runner at random moments, and checks that no row is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from deltalake import DeltaTable

from freshline.base.clock import clock
from freshline.testing.network import FeedSpec, Generator

SPECS = (
    FeedSpec("packets", "csv", 1, 50),
    FeedSpec("alerts", "json", 1, 20, phase_s=0.5),
    FeedSpec("flows", "parquet", 2, 30),
)
HEAD_START_US = 3_000_000
_OPENING_S = 6.0  # until one was measured
_OPENING_MAX_S = 600.0
_DERIVED = """\
  traffic:
    sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src"
    period: 2 seconds
    cost: {startup: 1s}
"""


@dataclass(frozen=True, slots=True)
class KillReport:
    """The findings after the kills."""

    kills: int
    while_opening: int  # of the kills: those before the runner's loop began
    files: int
    rows: dict[str, int]  # by table: the expected number
    lost: dict[str, int]
    doubled: dict[str, int]

    @property
    def exact(self) -> bool:
        return not any(self.lost.values()) and not any(self.doubled.values())


def write_project(folder: Path) -> Path:
    """Writes a small project with a period of a second, so that there is always something to interrupt."""
    lines = ["name: kills", "storage: warehouse", "pools:", "  updates: {tracks: 2}", "feeds:"]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: {spec.format}, schema: "{spec.schema}", '
        f"timestamp: ts, period: {spec.period_us // 1000}ms}}"
        for spec in SPECS
    ]
    lines.append("tables:")
    lines += [f"  {spec.name}: {{feed: {spec.name}, cost: {{startup: 500ms}}}}" for spec in SPECS]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "freshline.yml"
    file.write_text("\n".join([*lines, _DERIVED]), encoding="utf-8")
    return file


class Sender(Protocol):
    """Writes data files."""

    def due(self, until_us: int, /) -> object:
        """Writes the files that are due by then."""


class SendersClock:
    """The senders' clock: it stops while no runner is up.

    Spark takes longer to start than a runner lives: otherwise most files would be loaded only at the end.
    """

    def __init__(self) -> None:
        self._stood_us = clock()
        self._since_us: int | None = None

    def __call__(self) -> int:
        gone_us = 0 if self._since_us is None else clock() - self._since_us
        return self._stood_us + gone_us

    def go(self) -> None:
        self._since_us = clock()

    def stand(self) -> None:
        self._stood_us, self._since_us = self(), None


def kill_and_check(folder: Path, kills: int, seed: int, run_s: tuple[float, float]) -> KillReport:
    """Starts and kills runners, each after a random time; then drains and counts rows."""
    file = write_project(folder)
    clock = SendersClock()
    # A few files exist already, so that the first kill has something to interrupt.
    generator = Generator(SPECS, folder / "landing", seed, clock() - HEAD_START_US)
    while_opening = kill_often(file, kills, seed, run_s, generator, clock)
    return report(folder / "warehouse", generator, clock(), kills, while_opening)


def kill_often(
    file: Path, kills: int, seed: int, run_s: tuple[float, float], sender: Sender, clock: SendersClock
) -> int:
    """Kills that many runners, then lets one drain; returns how many were killed while they opened.

    `run_s` is the shortest and the longest life of a runner after its loop has begun, drawn on a logarithmic
    scale. Every third, and the first, is killed at a random moment after its start instead: while it opens
    Spark, makes tables, catches up, or soon after.
    """
    rng = random.Random(f"kills:{seed}")
    shortest_s, longest_s = run_s
    opening_s = _OPENING_S
    while_opening = 0
    for number in range(kills):
        if number % 3 == 0:
            # Most of an opening is Spark's; the part of Freshline comes at its end.
            moment_s = rng.triangular(0, 1.2 * opening_s, opening_s)
            opened_s = _run_and_kill(file, moment_s, True, sender, clock)
        else:
            alive_s = shortest_s * (longest_s / shortest_s) ** rng.random()
            opened_s = _run_and_kill(file, alive_s, False, sender, clock)
        while_opening += opened_s is None
        opening_s = opened_s or opening_s
    _drain(file)
    return while_opening


def _run_and_kill(
    file: Path, after_s: float, from_start: bool, sender: Sender, clock: SendersClock
) -> float | None:
    """Kills a runner that long after its start or its loop's; returns when the loop began, if it did."""
    status = file.parent / "warehouse" / "_freshline" / "status.json"
    status.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "freshline", "run", "-p", str(file), "--for", "10m", "--cold"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    started = time.monotonic()
    until = started + (after_s if from_start else _OPENING_MAX_S)
    opened_s: float | None = None
    try:
        while (now := time.monotonic()) < until:
            if process.poll() is not None:
                said = process.stderr.read().decode() if process.stderr else ""
                raise RuntimeError(f"the runner ended by itself: {said[-2000:]}")
            if opened_s is None and _has_begun(status):
                opened_s = now - started
                until = until if from_start else now + after_s
                clock.go()
            sender.due(clock())
            time.sleep(min(0.05, max(0.0, until - time.monotonic())))
        if opened_s is None and not from_start:
            raise RuntimeError(f"the runner did not start within {_OPENING_MAX_S:.0f} s")
    finally:
        # The whole process group: Python and its JVM.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        clock.stand()
        sender.due(clock())
        if process.stderr:
            process.stderr.close()
    return opened_s


def _has_begun(status: Path) -> bool:
    """Whether a runner's loop has begun: until then its status has no tables."""
    try:
        return bool(json.loads(status.read_text(encoding="utf-8"))["tables"])
    except FileNotFoundError:
        return False


def _drain(file: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "freshline", "run", "-p", str(file), "--cold", "--drain", "--for", "30m"],
        check=False,
        stdout=subprocess.DEVNULL,
        timeout=2_400,
    )


def report(
    storage: Path, generator: Generator, written_until: int, kills: int, while_opening: int = 0
) -> KillReport:
    """Compares the tables of the project, row for row, with what was written by then."""
    rows: dict[str, int] = {}
    lost: dict[str, int] = {}
    doubled: dict[str, int] = {}
    files = 0
    packets: Counter[Any] = Counter()
    for spec in SPECS:
        numbers = generator.numbers(spec.name, written_until)
        files += len(numbers)
        expected = Counter(row for number in numbers for row in generator.rows(spec.name, number))
        if spec.name == "packets":
            packets = expected
        found = _rows(storage, spec.name, ["ts", *(column for column, _, _ in spec.columns)])
        rows[spec.name] = expected.total()
        lost[spec.name] = (expected - found).total()
        doubled[spec.name] = (found - expected).total()
    expected = _traffic(packets)
    found = _rows(storage, "traffic", ["ts", "src", "bytes"])
    rows["traffic"] = expected.total()
    lost["traffic"], doubled["traffic"] = (expected - found).total(), (found - expected).total()
    return KillReport(kills, while_opening, files, rows, lost, doubled)


def _traffic(packets: Counter[Any]) -> Counter[Any]:
    """The derived table, computed without Spark."""
    sums: dict[tuple[Any, Any], int] = {}
    for (ts, src, _, size), times in packets.items():
        sums[ts, src] = sums.get((ts, src), 0) + size * times
    return Counter((ts, src, size) for (ts, src), size in sums.items())


def _rows(storage: Path, table: str, columns: list[str]) -> Counter[Any]:
    data = DeltaTable(storage / "tables" / table).to_pyarrow_dataset().to_table(columns=columns)
    return Counter(zip(*(data[column].to_pylist() for column in columns), strict=True))
