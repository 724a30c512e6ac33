"""Random whole warehouses, every kind of work beside every other: planned, simulated with faults, replayed.

Asserted together: bounds of tables, promised recoveries, budgets of queries, deadlines and sub-deadlines of
outputs, counts of classes, files loaded once, equal replays, and no exception. The first finding of each kind
is printed with the command that reproduces it. With `--live` others run on Spark, half a minute each: every
row is there once, and every bound is kept or a broken assumption is named.

    .venv/bin/python benchmarks/whole_warehouses.py --warehouses 2000
    .venv/bin/python benchmarks/whole_warehouses.py --first-seed 17 --warehouses 1 --write out/seed17
    .venv/bin/python benchmarks/whole_warehouses.py --live 100
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from freshline_lab.campaigns.whole.documents import whole_text
from freshline_lab.campaigns.whole.live_run import check_live
from freshline_lab.campaigns.whole.report import WholeReport
from freshline_lab.campaigns.whole.whole_run import check_whole

REPORT_S = 15.0


def reports(seeds: range, processes: int, live: bool) -> Iterator[WholeReport]:
    if live:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                yield check_live(seed, Path(folder))
        return
    if processes == 1:
        yield from map(check_whole, seeds)
        return
    with ProcessPoolExecutor(processes) as executor:
        yield from executor.map(check_whole, seeds, chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouses", type=int, default=2_000)
    parser.add_argument("--live", type=int, default=0, metavar="N", help="run so many on Spark instead")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="print every finding, not the first of a kind")
    parser.add_argument("--write", type=Path, help="write the file of the first seed into this folder")
    arguments = parser.parse_args()
    if arguments.write is not None:
        arguments.write.mkdir(parents=True, exist_ok=True)
        (arguments.write / "freshline.yml").write_text(whole_text(arguments.first_seed), encoding="utf-8")
    count, option = (arguments.live, "--live") if arguments.live else (arguments.warehouses, "--warehouses")
    seeds = range(arguments.first_seed, arguments.first_seed + count)
    counts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    reported = started = time.monotonic()
    for done, report in enumerate(reports(seeds, arguments.processes, bool(arguments.live)), 1):
        counts += report.counts
        for what in report.wrong:
            kind = what.partition(":")[0]
            wrong[kind] += 1
            if wrong[kind] == 1 or arguments.all:
                print(f"seed {report.seed}, after {done} warehouses: {what}", flush=True)
                again = f"--first-seed {report.seed} {option} 1 --all"
                print(f"  again: .venv/bin/python benchmarks/whole_warehouses.py {again}", flush=True)
        if time.monotonic() - reported > REPORT_S:
            reported = time.monotonic()
            print(f"{done:,} of {len(seeds):,}, {wrong.total():,} findings", file=sys.stderr, flush=True)
    print(f"{len(seeds):,} whole warehouses in {time.monotonic() - started:.0f} s")
    print(", ".join(f"{number:,} {what}" for what, number in counts.items()))
    print(f"findings: {dict(wrong) or 0}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
