"""Kills nodes of a warehouse, and checks that every row of its outputs is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.layout import StorageLayout

NODES: Final = ("edge", "centre")
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ROWS: Final = 30  # of a file, of which this many are kept:
KEPT: Final = 12
_PROJECT: Final = """\
name: sensors
storage: warehouse
nodes:
{nodes}
feeds:
  readings:
    path: {landing}
    format: csv
    schema: "ts TIMESTAMP, sensor INT, value INT"
    timestamp: ts
    period: 1s
    node: edge
    shed: {{most: {kept}, per: 1s, value: "value"}}
tables:
  readings: {{feed: readings, cost: {{startup: 300ms}}}}
  high:
    sql: "SELECT ts, sensor, value FROM readings WHERE value % 3 <> 0"
    node: edge
    cost: {{startup: 300ms}}
  near:
    sql: "SELECT ts, sensor FROM high WHERE sensor < 10"
    node: edge
    deadline: 20s
    cost: {{startup: 300ms}}
  alerts:
    sql: "SELECT ts, sensor, value * 2 AS doubled FROM high"
    node: {far}
    deadline: 20s
    cost: {{startup: 300ms}}
"""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The findings after the kills."""

    kills: int
    rows: dict[str, int]  # by table: the expected number
    lost: dict[str, int]
    doubled: dict[str, int]

    @property
    def exact(self) -> bool:
        return not any(self.lost.values()) and not any(self.doubled.values())


def write_node_project(folder: Path, nodes: tuple[str, ...] = NODES, landing: str = "landing") -> Path:
    """Writes a project with two outputs of a feed that sheds, on the feed's node and on the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / landing).mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f'  {node}: {{master: "local[1]"}}' for node in nodes)
    file = folder / "freshline.yml"
    text = _PROJECT.format(nodes=lines, landing=landing, kept=KEPT, far=nodes[-1])
    file.write_text(text, encoding="utf-8")
    return file


def write_file(landing: Path, number: int, seed: int) -> None:
    """Writes file `number`: the readings of one second, with random values."""
    rows = [(at.isoformat(), sensor, value) for at, sensor, value in _readings(number, seed)]
    lines = ["ts,sensor,value", *(",".join(map(str, row)) for row in rows)]
    draft = landing / f".{number:05d}.csv"
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.rename(landing / f"{number:05d}.csv")


def expected(numbers: range, seed: int) -> dict[str, Counter[Any]]:
    """By table: the rows that these files make, computed without Spark."""
    kept = [row for number in numbers for row in _kept(_readings(number, seed))]
    high = [row for row in kept if row[2] % 3 != 0]
    return {
        "readings": Counter(kept),
        "high": Counter(high),
        "near": Counter((at, sensor) for at, sensor, _ in high if sensor < 10),
        "alerts": Counter((at, sensor, 2 * value) for at, sensor, value in high),
    }


def _readings(number: int, seed: int) -> list[tuple[datetime, int, int]]:
    rng = random.Random(f"readings:{seed}:{number}")
    second = _FIRST + timedelta(seconds=number)
    values = rng.sample(range(1000), _ROWS)
    return [(second + timedelta(milliseconds=10 * place), place, value) for place, value in enumerate(values)]


def _kept(readings: list[tuple[datetime, int, int]]) -> list[tuple[datetime, int, int]]:
    return sorted(readings, key=lambda row: -row[2])[:KEPT]


def check_nodes(storage: Path, numbers: range, seed: int, kills: int) -> NodeReport:
    """Compares the tables, row for row, with what was written."""
    columns = {
        "readings": ["ts", "sensor", "value"],
        "high": ["ts", "sensor", "value"],
        "near": ["ts", "sensor"],
        "alerts": ["ts", "sensor", "doubled"],
    }
    wanted = expected(numbers, seed)
    lost, doubled = {}, {}
    for table, rows in wanted.items():
        data = DeltaTable(storage / "tables" / table).to_pyarrow_dataset().to_table(columns=columns[table])
        found = Counter(zip(*(data[column].to_pylist() for column in columns[table]), strict=True))
        lost[table], doubled[table] = (rows - found).total(), (found - rows).total()
    return NodeReport(kills, {table: rows.total() for table, rows in wanted.items()}, lost, doubled)


class NodesRun:
    """`freshline run` of a project in another process, with one more for each of its nodes."""

    def __init__(self, file: Path, *options: str, output: Path, cold: bool = True) -> None:
        self._layout = StorageLayout(file.parent / "warehouse")
        self._output = output
        options = ("--json", *(["--cold"] if cold else []), *options)
        with output.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "freshline", "run", "-p", str(file), *options],
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )

    def wait_until(self, happened: Callable[[], bool], timeout_s: float) -> None:
        """Waits; raises RuntimeError if the run ends before."""
        until = time.monotonic() + timeout_s
        while not happened():
            if self.process.poll() is not None or time.monotonic() > until:
                said = self._output.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"it never happened; exit code {self.process.poll()}: {said}")
            time.sleep(0.02)

    def status(self, node: str | None) -> WarehouseStatus | None:
        """The status of the process of a node, or of a warehouse without nodes; None before there is one."""
        path = self._layout.control(node).status
        return WarehouseStatus.read(path) if path.exists() else None

    def is_up(self, node: str | None, but: int | None = None) -> bool:
        """Whether a process of the node runs, other than `but`."""
        status = self.status(node)
        return status is not None and not status.is_opening and status.pid != but

    def is_settled(self, node: str | None) -> bool:
        """Whether a process of the node runs and has warmed all its plans up."""
        status = self.status(node)
        return status is not None and not status.is_opening and status.starting is None

    def kill(self, node: str) -> int:
        """Kills the process of a node with its Spark; returns its pid."""
        status = self.status(node)
        assert status is not None, f"{node} does not run"
        with suppress(ProcessLookupError):
            os.killpg(status.pid, signal.SIGKILL)
        return status.pid

    def end(self, timeout_s: float) -> tuple[int, dict[str, Any]]:
        """Waits for its end; returns its exit code and its summary."""
        said, _ = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, json.loads(said) if said.strip() else {}

    def stop(self, timeout_s: float) -> None:
        """Stops it; kills it after the timeout."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
