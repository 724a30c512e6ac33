"""Updates derived tables of random SQL piece by piece, and compares each with its query on Spark.

.venv/bin/python benchmarks/sql_equality.py --statements 2000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from freshline.spark.session.session import open_session
from freshline_lab.campaigns.sql.sql_equality import QUICK, check_statement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    session = open_session("equality", "local[1]", QUICK)
    outcomes: Counter[str] = Counter()
    compared = empty = 0
    started = time.perf_counter()
    for number in range(arguments.statements):
        seed = f"{arguments.seed}:{number}"
        case = check_statement(session, seed)
        outcomes[case.outcome] += 1
        compared += case.rows
        empty += case.outcome == "equal" and not case.rows
        if case.outcome == "different":
            print(f"seed {seed}: {{{case.keys}}} {case.sql}\n  {case.why}", flush=True)
    session.stop()
    taken = outcomes["equal"] + outcomes["different"]
    share = taken / arguments.statements
    print(f"{arguments.statements:,} statements in {time.perf_counter() - started:.0f} s")
    print(f"taken: {taken:,} ({share:.0%}), refused: {outcomes['refused']:,}, "
          f"not for Spark: {outcomes['not for Spark']:,}")  # fmt: skip
    print(f"equal: {outcomes['equal']:,} ({compared:,} rows compared, {empty:,} statements without any)")
    print(f"different: {outcomes['different']:,}")
    sys.exit(1 if outcomes["different"] or share < 0.3 else 0)


if __name__ == "__main__":
    main()
