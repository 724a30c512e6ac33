"""Kills of a runner at random moments; then every row is looked for, once.

.venv/bin/python benchmarks/kills.py --kills 50 [--left-out]

With `--left-out` files are discarded and rows are shed meanwhile, on a track that has too much to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from freshline_lab.campaigns.kills.discard_kills import DiscardReport, kill_and_check_left_out
from freshline_lab.campaigns.kills.kills import kill_and_check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shortest", type=float, default=0.2, metavar="SECONDS", help="time between kills")
    parser.add_argument("--longest", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--left-out", action="store_true", help="with files and rows that are left out")
    arguments = parser.parse_args()
    print(f"{arguments.kills} kills, seed {arguments.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run_s = (arguments.shortest, arguments.longest)
        check = kill_and_check_left_out if arguments.left_out else kill_and_check
        report = check(Path(folder), arguments.kills, arguments.seed, run_s)
    took_s = time.monotonic() - started
    opening = f"{report.while_opening} of them while the runner opened"
    print(f"{report.kills} kills, {opening}, and {report.files} files in {took_s:.0f} s")
    print(f"{'table':<10}{'rows':>10}{'lost':>8}{'twice':>8}")
    for table, rows in report.rows.items():
        print(f"{table:<10}{rows:>10,}{report.lost[table]:>8}{report.doubled[table]:>8}")
    if isinstance(report, DiscardReport):
        changing = f"{report.discarded_changing} of them would have changed something"
        print(f"{report.discarded} files were discarded, {changing}, {report.largest_error:.3f} at most")
    print("Nothing is lost, and nothing is there twice." if report.exact else "NOT EXACT")
    return 0 if report.exact else 1


if __name__ == "__main__":
    sys.exit(main())
