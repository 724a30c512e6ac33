"""Random warehouses whose jobs fail and whose runner crashes: nothing lost, nothing twice, no bound exceeded.

Each run draws its warehouse, its policy, and what goes wrong: failures, crashes, outages, times without rows,
each alone or together. Bounds and promises count again as docs/semantics.md says. Every journal is replayed.

.venv/bin/python benchmarks/failures_hold.py --runs 1000
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import POLICIES, PolicyName, policies_for
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.simulation.conditions.conditions import checked
from freshline_lab.campaigns.recovery.recoveries import RecoveryReport, run_through
from freshline_lab.runs.warehouses import (
    crowded_warehouse,
    random_crashes,
    random_failures,
    random_gaps,
    random_outages,
    random_warehouse,
    with_random_blocking,
)

LENGTH_US = 600 * SECOND
# Time for what broke late to recover.
AFTERWARDS_US = 400 * SECOND
PROVEN = [name for name in policies_for("tables") if POLICIES[name].proven]


def policy_of(seed: int) -> PolicyName:
    return PROVEN[seed % len(PROVEN)]


def kept(seed: int) -> tuple[RecoveryReport, bool]:
    """What a run showed, and whether its journal replays."""
    rng = Random(f"failures hold:{seed}")
    warehouse = crowded_warehouse(seed) if rng.random() < 0.3 else random_warehouse(seed)
    if rng.random() < 0.4:
        warehouse = with_random_blocking(warehouse, seed)
    end = LENGTH_US + AFTERWARDS_US
    fails, crashes = rng.choice(((True, False), (False, True), (True, True)))
    conditions = checked(
        warehouse,
        end,
        outages=random_outages(warehouse, seed, LENGTH_US) if rng.random() < 0.5 else {},
        gaps=random_gaps(warehouse, seed, LENGTH_US) if rng.random() < 0.3 else {},
        failures=random_failures(warehouse, seed) if fails else {},
        crashes=random_crashes(seed, LENGTH_US) if crashes else (),
    )
    log = io.StringIO()
    found = run_through(warehouse, policy_of(seed), conditions, end, seed, log, known_batches=seed % 3 == 1)
    header, *calls = map(json.loads, log.getvalue().splitlines())
    return found, replay(kernel_of(header), calls, header) == (len(calls), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.runs)
    wrong = jobs = batches = failures = crashes = files = recoveries = promised = 0
    bound = promise = 0.0
    runs: Counter[PolicyName] = Counter()
    with ProcessPoolExecutor() as executor:
        for seed, (found, replays) in zip(seeds, executor.map(kept, seeds, chunksize=10), strict=True):
            runs[policy_of(seed)] += 1
            jobs += found.jobs
            batches += found.batches
            failures += found.failures
            crashes += found.crashes
            files += found.files
            recoveries += len(found.recoveries)
            promised += sum(recovery.due is not None for recovery in found.recoveries)
            bound, promise = max(bound, found.tightest_bound), max(promise, found.tightest_promise)
            for what in [*found.wrong, *([] if replays else ["its journal does not replay"])]:
                wrong += 1
                print(f"seed {seed}, {policy_of(seed)}: {what}", flush=True)
    print(f"{len(seeds):,} runs: {', '.join(f'{policy} {count:,}' for policy, count in runs.items())}")
    print(
        f"{jobs:,} jobs that ended well, {batches:,} of them of several files, "
        f"{failures:,} that failed, {crashes:,} crashes, {files:,} files, "
        f"{recoveries:,} recoveries, {promised:,} with a promise"
    )
    print(f"tightest: staleness {bound:.6f} of a bound asserted, recovery {promise:.3f} of the time promised")
    print(f"bounds exceeded, promises broken, files not loaded once, journals that differ: {wrong}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
