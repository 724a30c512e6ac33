"""Random warehouses with random outages: no bound is exceeded, no recovery outlasts its promise.

As many are crowded, with outages that last long: there what is late is passed over for long. Every second
warehouse has times without rows, which derived tables jump over; in every third jobs fail, in every fourth
the runner crashes, in every fifth bounds count with batches, in every fifth released jobs take several files.

.venv/bin/python benchmarks/recovery_holds.py --warehouses 1000
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.simulation.conditions.conditions import checked
from freshline_lab.campaigns.recovery.recoveries import RecoveryReport, run_through
from freshline_lab.runs.warehouses import (
    crowded_warehouse,
    long_outages,
    random_crashes,
    random_failures,
    random_gaps,
    random_outages,
    random_warehouse,
    with_random_blocking,
)

LENGTH_US = 1_000 * SECOND
LENGTH_CROWDED_US = 2_000 * SECOND
# Time for what broke late to recover.
AFTERWARDS_US = 1_000 * SECOND


def kept(case: tuple[int, PolicyName]) -> RecoveryReport:
    seed, policy = case
    warehouse = random_warehouse(seed)
    if seed % 5 == 0:
        warehouse = with_random_blocking(warehouse, seed)
    end = LENGTH_US + AFTERWARDS_US
    conditions = checked(
        warehouse,
        end,
        outages=random_outages(warehouse, seed, LENGTH_US),
        gaps=random_gaps(warehouse, seed, LENGTH_US) if seed % 2 else {},
        failures=random_failures(warehouse, seed) if seed % 3 == 0 else {},
        crashes=random_crashes(seed, LENGTH_US) if seed % 4 == 0 else (),
    )
    return run_through(warehouse, policy, conditions, end, seed, known_batches=seed % 5 == 1)


def kept_crowded(case: tuple[int, PolicyName]) -> RecoveryReport:
    seed, policy = case
    warehouse = crowded_warehouse(seed)
    if seed % 5 == 0:
        warehouse = with_random_blocking(warehouse, seed)
    end = LENGTH_CROWDED_US + AFTERWARDS_US
    conditions = checked(
        warehouse,
        end,
        outages=long_outages(warehouse, seed, LENGTH_CROWDED_US),
        failures=random_failures(warehouse, seed) if seed % 3 == 0 else {},
        crashes=random_crashes(seed, LENGTH_CROWDED_US) if seed % 4 == 0 else (),
    )
    return run_through(warehouse, policy, conditions, end, seed, known_batches=seed % 5 == 1)


KINDS = {"random": kept, "crowded": kept_crowded}


def held(kind: str, policy: PolicyName, seeds: range) -> int:
    """Runs the warehouses of a kind and prints what was found; how often something was not kept."""
    wrong = jobs = jumps = batches = failures = crashes = recoveries = promised = certificates = 0
    bound = promise = 0.0
    with ProcessPoolExecutor() as executor:
        cases = [(seed, policy) for seed in seeds]
        for seed, found in zip(seeds, executor.map(KINDS[kind], cases, chunksize=10), strict=True):
            jobs += found.jobs
            batches += found.batches
            jumps += found.jumps
            failures += found.failures
            crashes += found.crashes
            recoveries += len(found.recoveries)
            promised += sum(recovery.due is not None for recovery in found.recoveries)
            certificates += found.certificates
            bound, promise = max(bound, found.tightest_bound), max(promise, found.tightest_promise)
            for what in found.wrong:
                wrong += 1
                print(f"{kind}, seed {seed}: {what}", flush=True)
    print(
        f"{policy}: {len(seeds):,} {kind} warehouses, {jobs:,} jobs, {jumps:,} of them over gaps, "
        f"{batches:,} of several files, {failures:,} failures, {crashes:,} crashes,\n"
        f"  {recoveries:,} recoveries, {promised:,} with a promise, {certificates:,} certificates tried\n"
        f"  tightest: staleness {bound:.6f} of its bound, recovery {promise:.3f} of the time promised",
        flush=True,
    )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouses", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--policy", nargs="+", default=["aus", "aus-slack"])
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.warehouses)
    wrong = sum(held(kind, policy, seeds) for policy in arguments.policy for kind in KINDS)
    print(f"bounds exceeded, promises broken, files not loaded once: {wrong}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
