"""Paper 002's (6) is sound: random plans that are placed in time, run with bursts as near as is allowed.

Prints how close the worst output came to its deadline; exit code 1 if one was after it.

    .venv/bin/python benchmarks/placement_holds.py --plans 1000
"""

from __future__ import annotations

import argparse
import sys

from freshline_lab.campaigns.placement.placement_holds import WAYS, random_placed, run_placed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3, help="of each plan")
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    sys.exit(main())
