"""Sheds random overloaded sets of continuous queries by every rule, and compares the errors.

3 to 10 queries of 1.05 to 2.5 tracks; `best`, by a mixed-integer program, for the first of them only.

    .venv/bin/python benchmarks/shedding.py --sets 10000 --best 500
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from freshline_lab.campaigns.queries.shedding import RULES, ShedCheck, shed_set

ERROR_MOST = 0.55  # of least-error over the paper's, on average
OVER_BEST_MOST = 1.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--best", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.sets)
    with ProcessPoolExecutor() as executor:
        found = list(executor.map(partial(shed_set, with_best=False), seeds, chunksize=100))
        best = list(executor.map(partial(shed_set, with_best=True), seeds[: arguments.best], chunksize=10))
    print(f"{len(found):,} overloaded sets; the exact test passes after shedding:")
    as_printed = sum(each.as_printed for each in found)
    print(f"  as printed    {as_printed:>6,} ({as_printed / len(found):.2%})")
    passed = True
    for rule in RULES:
        schedulable = sum(each.schedulable[rule] for each in found)
        over = [each.over_paper(rule) for each in found]
        print(
            f"  {rule:<13} {schedulable:>6,}, error over the paper's: mean {sum(over) / len(over):.4f}, "
            f"worst {max(over):.4f}, above it in {sum(ratio > 1 for ratio in over) / len(over):.1%}"
        )
        passed &= schedulable == len(found)
    ratios = [each.over_paper("least-error") for each in found]
    passed &= as_printed < 0.01 * len(found)
    passed &= sum(ratios) / len(ratios) <= ERROR_MOST and max(ratios) <= 1
    if best:
        passed &= _against_best(best)
    print("as required" if passed else "NOT as required")
    sys.exit(not passed)


def _against_best(found: list[ShedCheck]) -> bool:
    over = [each.error["least-error"] / each.error["best"] for each in found]
    mean = sum(over) / len(over)
    print(f"{len(found):,} of them: least-error over best: mean {mean:.5f}, worst {max(over):.4f}")
    return mean <= OVER_BEST_MOST


if __name__ == "__main__":
    main()
