"""Simulated parts of requests a CPU-second, in paper 003's workload: updates of 1,000 objects among them.

.venv/bin/python benchmarks/request_speed.py --seconds 100
"""

from __future__ import annotations

import argparse
import time

from freshline.definitions.language.policies import policies_for
from freshline_lab.experiments.classes.service_runs import simulate_classes

LOADS = (100, 200, 300)
AT_LEAST = 30_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=100)
    arguments = parser.parse_args()
    slowest = float("inf")
    for policy in policies_for("classes"):
        for load in LOADS:
            started = time.process_time()
            course = simulate_classes(policy, [(0, load)], seed=0, seconds=arguments.seconds)
            speed = course.parts / (time.process_time() - started)
            slowest = min(slowest, speed)
            print(f"{policy} at {load} %: {speed:,.0f} parts a CPU-second")
    print(f"slowest: {slowest:,.0f} (at least {AT_LEAST:,} are asked)")


if __name__ == "__main__":
    main()
