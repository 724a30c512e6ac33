"""Simulates random warehouses and compares every table's staleness with its proven bound.

Every second one has times without rows, which derived tables jump over; in every third there are feeds that
are down for a while, and pools whose bounds count with batches: there what is asserted is compared.

.venv/bin/python benchmarks/bounds_hold.py --warehouses 1000
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from freshline.base.duration import SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import make_plan
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.simulate import simulate
from freshline_lab.campaigns.recovery.recoveries import run_through
from freshline_lab.runs.warehouses import (
    random_gaps,
    random_outages,
    random_warehouse,
    with_random_blocking,
)

LENGTH_US = 1_000 * SECOND
# Bounds in which the theorems about contention have a say, not only phase and period.
TARDY = "with tardiness"


def closest(seed: int) -> tuple[int, int, list[tuple[float, str, str]]]:
    """Tables, jobs, and for each table (staleness over bound, its name, how it is bounded)."""
    warehouse = random_warehouse(seed)
    gaps = random_gaps(warehouse, seed, LENGTH_US) if seed % 2 else {}
    if seed % 3 == 0:
        return with_batches(with_random_blocking(warehouse, seed), seed, gaps)
    result = simulate(make_plan(warehouse), LENGTH_US, seed, gaps=gaps)
    ratios = []
    for table in result.tables:
        assert table.plan.staleness_bound_us is not None
        assert table.plan.response_bound_us is not None
        kind = TARDY if table.plan.response_bound_us > table.plan.period_us else "without"
        ratios.append((table.staleness_max_us / table.plan.staleness_bound_us, table.plan.name, kind))
    return len(ratios), sum(table.jobs for table in result.tables), ratios


def with_batches(
    warehouse: Warehouse, seed: int, gaps: dict[str, list[tuple[int, int]]]
) -> tuple[int, int, list[tuple[float, str, str]]]:
    """The same of a warehouse with backlogs; of its tables the worst."""
    conditions = checked(
        warehouse, LENGTH_US, outages=random_outages(warehouse, seed, LENGTH_US // 2), gaps=gaps
    )
    kept = run_through(warehouse, None, conditions, LENGTH_US, seed)
    return len(warehouse.tables), kept.jobs, [(kept.tightest_bound, "any", "with batches")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouses", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.warehouses)
    tables = jobs = exceeded = 0
    tightest: dict[str, tuple[float, int, str]] = {}
    with ProcessPoolExecutor() as executor:
        for seed, (count, finished, ratios) in zip(
            seeds, executor.map(closest, seeds, chunksize=10), strict=True
        ):
            tables += count
            jobs += finished
            for ratio, name, kind in ratios:
                exceeded += ratio > 1
                tightest[kind] = max(tightest.get(kind, (0.0, 0, "")), (ratio, seed, name))
    print(f"{arguments.warehouses:,} random warehouses, {tables:,} tables, {jobs:,} jobs")
    for kind, (ratio, seed, name) in sorted(tightest.items()):
        print(f"tightest ratio of staleness to bound, {kind:>14}: {ratio:.6f} (seed {seed}, table {name})")
    print(f"bounds exceeded: {exceeded}")
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
