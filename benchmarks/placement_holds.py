"""Paper 002's (6) is sound: random plans that are placed in time, run with bursts as near as is allowed.

Prints how close the worst output came to its deadline; exit code 1 if one was after it.

    .venv/bin/python benchmarks/placement_holds.py --plans 1000
    .venv/bin/python benchmarks/placement_holds.py --outages 1000

The second simulates random projects with outages of 5 and 20 minutes of a feed: outputs of other feeds on the
same node must be in time, and the late ones must get all rows within the promise.
"""

from __future__ import annotations

import argparse
import sys

from freshline_lab.campaigns.placement.outages import outage_plan, try_outage
from freshline_lab.campaigns.placement.placement_holds import WAYS, random_placed, run_placed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3, help="of each plan")
    parser.add_argument("--outages", type=int, help="try so many outages beside proven outputs instead")
    arguments = parser.parse_args()
    if arguments.outages is not None:
        return _outages(arguments.outages)
    late = 0
    for way in WAYS:
        placed, worst, seed = 0, 0.0, -1
        while placed < arguments.plans // len(WAYS) + 1:
            seed += 1
            found = random_placed(seed, way)
            if found is None:
                continue
            placed += 1
            for run in range(arguments.runs):
                closest = run_placed(*found, seed * 1_000 + run, way)
                worst = max(worst, closest.share)
                if closest.late:
                    late += 1
                    print(f"late: {way}, plan {seed}, run {run}: {closest}", flush=True)
        print(f"{way}: {placed} plans of {seed + 1}, worst output at {worst:.3f} of its deadline", flush=True)
    return 1 if late else 0


def _outages(cases: int) -> int:
    tried, seed, broken, promises, worst, slowest = 0, -1, 0, 0, 0.0, 0.0
    while tried < cases:
        seed += 1
        plan = outage_plan(seed)
        if plan is None:
            continue
        trial = try_outage(seed, plan)
        tried += bool(trial.healthy)
        promises += len(trial.promised_us)
        worst = max(worst, trial.worst_share)
        slowest = max(
            [slowest, *(took / trial.promised_us[name] for name, took in trial.recovered_us.items())]
        )
        if trial.broken:
            broken += 1
            print(f"broken: project {seed}, feed {trial.feed}: {'; '.join(trial.broken)}", flush=True)
    print(
        f"{tried} outages beside proven outputs ({seed + 1} projects): the worst at {worst:.3f} of its "
        f"deadline; {promises} recoveries, the slowest after {slowest:.3f} of what was promised"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
