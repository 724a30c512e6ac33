"""Random warehouses with random outages: no bound is exceeded, no recovery outlasts its promise.

.venv/bin/python benchmarks/recovery_holds.py --warehouses 1000
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from freshline.definitions.duration import SECOND
from freshline.definitions.warehouse import PolicyName
from freshline.simulation.outages import checked_outages
from freshline.testing.recoveries import Kept, run_with_outages
from freshline.testing.warehouses import random_outages, random_warehouse

LENGTH_US = 1_000 * SECOND
# Time for what broke late to recover.
AFTERWARDS_US = 1_000 * SECOND


def kept(case: tuple[int, PolicyName]) -> Kept:
    seed, policy = case
    warehouse = random_warehouse(seed)
    outages = checked_outages(warehouse, random_outages(warehouse, seed, LENGTH_US))
    return run_with_outages(warehouse, policy, outages, LENGTH_US + AFTERWARDS_US, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouses", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--policy", nargs="+", default=["aus", "aus-slack"])
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.warehouses)
    wrong = 0
    for policy in arguments.policy:
        jobs = recoveries = promised = certificates = 0
        bound = promise = 0.0
        with ProcessPoolExecutor() as executor:
            cases = [(seed, policy) for seed in seeds]
            for seed, found in zip(seeds, executor.map(kept, cases, chunksize=10), strict=True):
                jobs += found.jobs
                recoveries += len(found.recoveries)
                promised += sum(recovery.due is not None for recovery in found.recoveries)
                certificates += found.certificates
                bound, promise = max(bound, found.tightest_bound), max(promise, found.tightest_promise)
                for what in found.exceeded + found.outlasted:
                    wrong += 1
                    print(f"seed {seed}: {what}")
        print(
            f"{policy}: {arguments.warehouses:,} random warehouses, {jobs:,} jobs, {recoveries:,} "
            f"recoveries, {promised:,} of them with a promise, {certificates:,} certificates tried\n"
            f"  tightest: staleness {bound:.6f} of its bound, recovery {promise:.3f} of the time promised",
            flush=True,
        )
    print(f"bounds exceeded or promises broken: {wrong}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
