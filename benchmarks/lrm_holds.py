"""Random continuous queries under `lrm`: no answer is late, whatever the streams do (docs/lrm.md).

Two to eight queries over streams whose rates jump tenfold within half a second, or whose windows hold
something else each time; parts of whatever length, queries that come, go and are changed. Each set is
answered under every rescheduling policy, and every journal is replayed.

.venv/bin/python benchmarks/lrm_holds.py --sets 1000
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from freshline.kernel.assembly.replay import replay
from freshline_lab.campaigns.queries.query_sets import RESCHEDULINGS, answer, random_queries
from freshline_lab.runs.query_run import query_kernel


class Tally(NamedTuple):
    """What one set showed under all rescheduling policies."""

    answers: int
    missed: int
    shed: int  # answers that read less than their window
    came: int
    reschedules: int
    tightest: float  # response over deadline
    replayed_otherwise: int


def tally(seed: int) -> Tally:
    answers = missed = shed = came = reschedules = otherwise = 0
    tightest = 0.0
    for rescheduling in RESCHEDULINGS:
        queries, log = random_queries(seed, rescheduling), io.StringIO()
        seen = answer(queries, seed, log)
        answers += len(seen.outcomes)
        missed += len(seen.missed)
        came += seen.came
        reschedules += seen.reschedules
        for outcome in seen.outcomes:
            shed += outcome.keep < 1
            if outcome.finished is not None:
                spent = (outcome.finished - outcome.released) / (outcome.deadline - outcome.released)
                tightest = max(tightest, spent)
        _, *calls = map(json.loads, log.getvalue().splitlines())
        said = replay(query_kernel(queries.pool, queries.at_first), calls)
        otherwise += said != (len(calls), None)
    return Tally(answers, missed, shed, came, reschedules, tightest, otherwise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--from-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=None)
    arguments = parser.parse_args()
    seeds = range(arguments.from_seed, arguments.from_seed + arguments.sets)
    with ProcessPoolExecutor(arguments.processes) as pool:
        tallies = list(pool.map(tally, seeds, chunksize=8))
    wrong = [
        seed for seed, each in zip(seeds, tallies, strict=True) if each.missed or each.replayed_otherwise
    ]
    answers, missed, shed, came, reschedules = (
        sum(column) for column in list(zip(*tallies, strict=True))[:5]
    )
    print(f"{len(seeds):,} sets under {len(RESCHEDULINGS)} rescheduling policies: {answers:,} answers")
    print(f"{shed:,} of them shed, {came:,} queries came, budgets were worked out anew {reschedules:,} times")
    print(
        f"missed: {missed}; the tightest answer took {max(each.tightest for each in tallies):.4f} of its time"
    )
    print(f"journals that replay to something else: {sum(each.replayed_otherwise for each in tallies)}")
    if wrong:
        print(f"seeds: {wrong[:20]}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
