"""How long a plan takes, and how that grows with the number of tables.

Policy edf, m = ⌈1.1·U⌉, half of the tables derived, depth 5, arbitrary periods in ms.

    .venv/bin/python benchmarks/plan_speed.py
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from freshline.definitions.load import loads
from freshline.planning.analysis.utilization import utilization
from freshline.planning.plan.make import make_plan

SIZES = (1_000, 10_000, 100_000)
DEPTH = 5


def warehouse_file(tables: int, seed: int = 0) -> str:
    """A warehouse's file with so many tables."""
    rng = random.Random(seed)
    base = tables // 2
    feeds, lines, costs, periods = [], [], [], []
    levels: list[list[str]] = [[] for _ in range(DEPTH)]
    for number in range(tables):
        name = f"t{number}"
        period_ms = rng.randint(10_000, 3_600_000)
        startup_ms = rng.randint(1, period_ms // 50)
        cost = f"cost: {{startup: {startup_ms}ms, rate: 0.01}}"
        costs.append(startup_ms * 100 + period_ms)
        periods.append(period_ms * 100)
        if number < base:
            feeds.append(f"  {name}: {{arrival: continuous, period: {period_ms}ms}}")
            lines.append(f"  {name}: {{feed: {name}, {cost}, target_lag: 30 days}}")
            levels[0].append(name)
        else:
            level = 1 + (number - base) * (DEPTH - 1) // (tables - base)
            sources = rng.sample(levels[level - 1], 2)
            join = f"{sources[0]} a JOIN {sources[1]} b ON a.k = b.k"
            sql = f"SELECT a.ts, a.k, sum(b.v) AS v FROM {join} GROUP BY a.ts, a.k"
            lines.append(f'  {name}: {{sql: "{sql}", period: {period_ms}ms, {cost}, target_lag: 30 days}}')
            levels[level].append(name)
    tracks = math.ceil(1.1 * utilization(costs, periods))
    head = ["name: large", "pools:", f"  updates: {{tracks: {tracks}, policy: edf}}"]
    return "\n".join([*head, "feeds:", *feeds, "tables:", *lines, ""])


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of log time over log size, between the smallest and the largest."""
    return math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    sizes = parser.parse_args().sizes
    analysis, command = [], []
    for size in sizes:
        text = warehouse_file(size)
        warehouse = loads(text)
        # The small sizes are over too soon to be measured once.
        rounds = max(1, 3_000 // size)
        started = time.process_time()
        for _ in range(rounds):
            plan = make_plan(warehouse)
        analysis.append((time.process_time() - started) / rounds)
        del warehouse
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "freshline.yml"
            file.write_text(text, encoding="utf-8")
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "freshline", "plan", "-p", str(file)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            command.append(time.perf_counter() - started)
        pool = plan.pools[0]
        print(
            f"{size:>7,} tables, U = {pool.utilization:.1f} on {pool.tracks} tracks: "
            f"analysis {analysis[-1]:.3f} CPU-s, `freshline plan` {command[-1]:.2f} s",
            flush=True,
        )
    if len(sizes) > 1:
        print(
            f"exponent of growth: analysis {exponent(sizes, analysis):.2f}, "
            f"`freshline plan` {exponent(sizes, command):.2f} (at most 1.2 is asked)"
        )


if __name__ == "__main__":
    main()
