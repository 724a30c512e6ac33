"""Nodes killed (-9) in turn while they work; then every output row is looked for, once, and on one node.

.venv/bin/python benchmarks/node_kills.py --kills 10
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from freshline_lab.campaigns.kills.node_kills import (
    NODES,
    NodesRun,
    check_nodes,
    write_file,
    write_node_project,
)

_PATIENCE_S = 900.0
_FILES_LEAST = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=5.0, metavar="SECONDS", help="between kills")
    arguments = parser.parse_args()
    print(f"{arguments.kills} kills, seed {arguments.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        exact, count = True, _FILES_LEAST
        for nodes, kills in ((NODES, arguments.kills), (NODES[:1], 0)):
            folder = Path(name) / f"on-{len(nodes)}"
            count = _run(folder, nodes, kills, arguments.seed, arguments.longest, count)
            report = check_nodes(folder / "warehouse", range(1, count + 1), arguments.seed, kills)
            exact = exact and report.exact
            print(f"{len(nodes)} nodes, {kills} kills, {count} files, {time.monotonic() - started:.0f} s")
            print(f"{'table':<10}{'rows':>10}{'lost':>8}{'twice':>8}")
            for table, rows in report.rows.items():
                print(f"{table:<10}{rows:>10,}{report.lost[table]:>8}{report.doubled[table]:>8}", flush=True)
    print("Every row is there once, on two nodes and on one." if exact else "NOT EXACT")
    return 0 if exact else 1


def _run(folder: Path, nodes: tuple[str, ...], kills: int, seed: int, longest_s: float, least: int) -> int:
    """So many files come, or more while nodes are killed, in turn; then all is drained. How many came."""
    rng = random.Random(f"node kills:{seed}")
    file = write_node_project(folder, nodes)
    landing, count = folder / "landing", 0
    if kills:
        run = NodesRun(file, output=folder / "said.txt")
        try:
            killed: dict[str, int] = {}
            for number in range(kills):
                node = nodes[number % len(nodes)]
                run.wait_until(partial(run.is_up, node, killed.get(node)), _PATIENCE_S)
                until = time.monotonic() + rng.uniform(0.2, longest_s)
                while time.monotonic() < until:
                    count += 1
                    write_file(landing, count, seed)
                    time.sleep(0.2)
                killed[node] = run.kill(node)
                print(f"  {node} killed, {count} files", flush=True)
        finally:
            run.stop(120)
    while count < least:
        count += 1
        write_file(landing, count, seed)
    run = NodesRun(file, "--drain", output=folder / "drained.txt")
    try:
        run.end(_PATIENCE_S)
    finally:
        run.stop(60)
    return count


if __name__ == "__main__":
    sys.exit(main())
