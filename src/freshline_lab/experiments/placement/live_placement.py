"""Paper 002's evaluation on Spark: two nodes, 15 tuples from other vehicles, time stretched 500-fold."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from freshline.definitions.load import load
from freshline.live.nodes.same_definitions import digest_of
from freshline.live.status.status import WarehouseStatus
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.layout import StorageLayout
from freshline_lab.experiments.placement.collision_query import (
    CENTRE_TUPLES,
    CHAIN,
    DEADLINES_MS,
    MS,
    PLANNED_FOR,
    SENSOR_TUPLES,
)
from freshline_lab.experiments.placement.placement import GAP_US, METHODS, VARIABILITY, setting_of

STRETCH: Final = 500
_NODES: Final = ("node1", "node2")
_OPENING_MAX_S: Final = 1_800.0
_TAKEN_IN_S: Final = 1.0  # until files are found: nodes look at different moments
_FEEDS: Final = {"sensor": "node1", "v2v": "node1", "centre": "node2"}
# A burst arrives within a period: the vehicles' tuples come one by one.
_PERIODS: Final = {"sensor": "1s", "v2v": "10s", "centre": "1s"}
_LOADS: Final = {"O1": "sensor", "O2": "v2v", "O5": "centre"}


class TupleCounts(NamedTuple):
    """The number of tuples of each kind."""

    sensor: int = SENSOR_TUPLES
    v2v: int = PLANNED_FOR
    centre: int = CENTRE_TUPLES

    @property
    def calls_of_node2(self) -> int:
        """The most calls of operators on the busier node."""
        return 2 * self.centre + self.v2v + self.v2v // 2 * len(CHAIN)


def run_live(
    quiet: bool, tuples: TupleCounts | None = None, methods: tuple[str, ...] = METHODS
) -> dict[str, Any]:
    """Runs one trial per method; the miss rates in percent, and whether they are in the paper's order."""
    rates = []
    for method in methods:
        with tempfile.TemporaryDirectory() as folder:
            rates.append(_trial(Path(folder), method, tuples or TupleCounts()))
        if not quiet:
            print(f"{method}: {rates[-1]['miss_rate']:.1f} % missed", file=sys.stderr, flush=True)
    order = [each["miss_rate"] for each in rates]
    return {"stretch": STRETCH, "miss_rates": rates, "in_order": all(a < b for a, b in pairwise(order))}


def _trial(folder: Path, method: str, tuples: TupleCounts) -> dict[str, Any]:
    write_project(folder, method)
    nodes = {
        node: subprocess.Popen(
            [sys.executable, "-m", "freshline_lab.experiments.placement.paced_node", str(folder), node],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        for node in _NODES
    }
    layout = StorageLayout(folder / "warehouse")
    try:
        _await(lambda: all(_is_up(layout, node) for node in _NODES), nodes, _OPENING_MAX_S)
        _feed(folder / "landing", tuples)
        longest_s = 3 * STRETCH * MS / 1e6 * tuples.calls_of_node2 + 120
        _await(lambda: _is_done(layout, tuples), nodes, longest_s)
    finally:
        for process in nodes.values():
            process.send_signal(signal.SIGTERM)
        for process in nodes.values():
            process.wait(60)
    return _rates(layout, method, tuples)


def write_project(folder: Path, method: str) -> None:
    """Writes the query as a project, and the method's placement into its storage."""
    setting = setting_of(method)
    lines = ["name: collision", "storage: warehouse", "nodes:"]
    lines += [f'  {node}: {{master: "local[1]", policy: {setting.policy}}}' for node in _NODES]
    lines.append("feeds:")
    for feed, node in _FEEDS.items():
        (folder / "landing" / feed).mkdir(parents=True)
        lines.append(
            f'  {feed}: {{path: landing/{feed}, format: csv, schema: "ts TIMESTAMP, n INT", timestamp: ts, '
            f"period: {_PERIODS[feed]}, node: {node}}}"
        )
    lines.append("tables:")
    before = dict(zip(CHAIN, ("O3", *CHAIN), strict=False)) | {"O3": "O2", "O6": "O5"}
    for name, node in setting.nodes.items():
        made = (
            f"feed: {_LOADS[name]}" if name in _LOADS else f'sql: "{_sql(name, before[name])}", node: {node}'
        )
        deadline_ms = DEADLINES_MS.get(name)
        deadline = "" if deadline_ms is None else f", deadline: {deadline_ms * STRETCH}ms"
        lines.append(f"  {name}: {{{made}{deadline}, cost: {{startup: {STRETCH}ms}}}}")
    (folder / "freshline.yml").write_text("\n".join([*lines, ""]), encoding="utf-8")
    placed = StepPlacement(
        dict(setting.nodes),
        {name: until_us * STRETCH for name, until_us in setting.sub_deadlines_us.items()},
        {name: cost_us * STRETCH for name, cost_us in setting.costs_us.items()},
        tuple(tuple(task) for task in setting.tasks),
        dict.fromkeys(_NODES, 0),  # an operator a job, as in the paper
        definitions=digest_of(load(folder / "freshline.yml")),
    )
    layout = StorageLayout(folder / "warehouse")
    layout.prepare(layout.control(_NODES[0]))
    layout.placements.add(placed.record(), 0)


def _sql(name: str, source: str) -> str:
    # O3 drops the first, the third and so on.
    return f"SELECT ts, n FROM {source}" + (" WHERE n % 2 = 0" if name == "O3" else "")


def _feed(landing: Path, tuples: TupleCounts) -> None:
    """Writes the centre's files, then those of other vehicles one by one, and then the sensor's."""
    for number in range(1, tuples.centre + 1):
        _put(landing / "centre", number)
    time.sleep(_TAKEN_IN_S)
    gap_s = GAP_US * STRETCH / 1e6
    begin = time.monotonic()
    for number in range(1, tuples.v2v + 1):
        time.sleep(max(0.0, begin + (number - 1) * gap_s - time.monotonic()))
        _put(landing / "v2v", number)
    time.sleep(max(0.0, begin + tuples.v2v * gap_s - time.monotonic()))
    for number in range(1, tuples.sensor + 1):
        _put(landing / "sensor", number)


def _put(folder: Path, number: int) -> None:
    draft = folder / f".{number:04d}.csv"
    draft.write_text(f"ts,n\n{datetime.now(UTC).isoformat()},{number}\n", encoding="utf-8")
    draft.rename(folder / f"{number:04d}.csv")


def _statuses(layout: StorageLayout) -> list[WarehouseStatus]:
    return [WarehouseStatus.read(layout.control(node).status) for node in _NODES]


def _is_up(layout: StorageLayout, node: str) -> bool:
    path = layout.control(node).status
    return path.exists() and not WarehouseStatus.read(path).is_opening


def _rows(layout: StorageLayout) -> dict[str, tuple[int, int]]:
    """Of each output: the rows that came out, and those too late."""
    outputs = [output for status in _statuses(layout) for output in status.outputs]
    return {output.name: (output.rows, output.misses) for output in outputs}


def _is_done(layout: StorageLayout, tuples: TupleCounts) -> bool:
    rows = _rows(layout)
    expected = {"O1": tuples.sensor, CHAIN[-1]: tuples.v2v // 2, "O6": tuples.centre}
    return all(rows.get(name, (0, 0))[0] >= count for name, count in expected.items())


def _rates(layout: StorageLayout, method: str, tuples: TupleCounts) -> dict[str, Any]:
    rows = _rows(layout)

    def percent(*outputs: str) -> float:
        came = sum(rows[name][0] for name in outputs)
        return 100 * sum(rows[name][1] for name in outputs) / came if came else 0.0

    return {
        "method": method,
        "v2v": tuples.v2v,
        "miss_rate": percent("O1", CHAIN[-1]),
        "output1": percent("O1"),
        "output2": percent(CHAIN[-1]),
        "all_outputs": percent("O1", CHAIN[-1], "O6"),
    }


def _await(happened: Any, nodes: Mapping[str, subprocess.Popen[bytes]], most_s: float) -> None:
    until = time.monotonic() + most_s
    while not happened():
        ended = [node for node, process in nodes.items() if process.poll() is not None]
        if ended or time.monotonic() > until:
            why = f"{ended[0]} has ended" if ended else f"it took more than {most_s:.0f} s"
            raise RuntimeError(f"the trial came to nothing: {why}")
        time.sleep(0.2)


def call_s(rng: random.Random) -> float:
    """The length of an operator's call."""
    return STRETCH * MS / 1e6 * rng.uniform(1 - VARIABILITY, 1 + VARIABILITY)


if __name__ == "__main__":
    print(json.dumps(run_live(quiet=False), indent=1))
