"""How long it takes from a commit on one node until the job that reads it is started on the next.

.venv/bin/python benchmarks/node_hops.py --files 40
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta import log
from freshline_lab.campaigns.kills.node_kills import NODES, NodesRun, write_file, write_node_project

_MOST_MS = 150.0
_PATIENCE_S = 900.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write_node_project(folder)
        run = NodesRun(file, output=folder / "said.txt")
        try:
            for node in NODES:
                run.wait_until(partial(run.is_up, node), _PATIENCE_S)
            for number in range(1, arguments.files + 1):
                write_file(folder / "landing", number, 0)
                time.sleep(arguments.every)
            run.wait_until(lambda: _backlog(run) == 0, _PATIENCE_S)
        finally:
            run.stop(120)
        hops_ms = sorted(_hops_ms(StorageLayout(folder / "warehouse")))
    median = statistics.median(hops_ms)
    print(f"{len(hops_ms)} hops: median {median:.0f} ms, 95 % {hops_ms[int(0.95 * len(hops_ms))]:.0f} ms")
    return 0 if median <= _MOST_MS else 1


def _backlog(run: NodesRun) -> int:
    return sum(step.backlog for node in NODES for step in getattr(run.status(node), "steps", ()))


def _hops_ms(layout: StorageLayout) -> list[float]:
    """Of commits of `high` after which the centre was idle: until the start of `alerts` for them."""
    table = layout.table("high")
    committed: dict[int, float] = {}  # by freshness
    for version in log.commits(table):
        path = log.commit_path(table, version)
        for line in path.read_text().splitlines():
            action = json.loads(line).get("txn", {})
            if action.get("appId") == "freshline.freshness":
                committed.setdefault(action["version"], path.stat().st_mtime)
    hops = []
    for journal in layout.control("centre").logs.glob("*.jsonl"):
        for line in journal.read_text().splitlines()[1:]:
            call = json.loads(line)
            advanced = [event["freshness"] for event in call.get("events", ()) if "advanced" in event]
            starts = [each for each in call.get("instructions", ()) if "start" in each]
            if advanced and starts and advanced[-1] in committed:
                hops.append(call["now"] / 1_000 - 1_000 * committed[advanced[-1]])
    return hops


if __name__ == "__main__":
    sys.exit(main())
