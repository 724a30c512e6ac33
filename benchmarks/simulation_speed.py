"""Simulated jobs a CPU-second, against SimSo 0.8.5, and memory over the length of a run.

The task set is paper 004's for four tracks (30 tasks, phase 0), each job costs 0.11·p on both sides, under
non-preemptive EDF. SimSo has no such scheduler, so it gets a small one with a heap, below.

    scripts/benchmarks            # installs SimSo, then runs this among others
    .venv/bin/python benchmarks/simulation_speed.py --jobs 100000
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import warnings
from fractions import Fraction
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

PERIODS_S = [300] * 3 + [900] * 3 + [3_600] * 3 + [28_800] * 21
TRACKS = 4


def freshline_jobs_per_second(jobs: int) -> float:
    from freshline.base.duration import SECOND
    from freshline.planning.plan.make import make_plan
    from freshline.simulation.simulate import simulate
    from freshline.testing.builder import Builder

    builder = Builder(tracks=TRACKS, policy="edf")
    for number, period in enumerate(PERIODS_S):
        builder.continuous(f"t{number}", period=period, cost=Fraction(11, 100) * period)
    plan = make_plan(builder.build())
    end_s = int(jobs / sum(1 / period for period in PERIODS_S))
    started = time.process_time()
    result = simulate(plan, end_s * SECOND)
    elapsed = time.process_time() - started
    return sum(table.jobs for table in result.tables) / elapsed


def simso_jobs_per_second(jobs: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SimSo imports `imp`
        from simso.configuration import Configuration
        from simso.core import Model, Scheduler

    class NonPreemptiveEdf(Scheduler):  # type: ignore[misc]
        def init(self) -> None:
            self.ready: list[tuple[float, int, Any]] = []

        def on_activate(self, job: Any) -> None:
            heappush(self.ready, (job.absolute_deadline, job.task.identifier, job))
            for processor in self.processors:
                if processor.running is None:
                    processor.resched()
                    return

        def on_terminated(self, job: Any) -> None:
            if self.ready:
                job.cpu.resched()

        def schedule(self, cpu: Any) -> tuple[Any, Any] | None:
            if self.ready and cpu.running is None:
                return heappop(self.ready)[2], cpu
            return None

    configuration = Configuration()
    configuration.cycles_per_ms = 100  # 0.11·p is then a whole number of cycles
    end = int(jobs / sum(1 / period for period in PERIODS_S))
    configuration.duration = end * configuration.cycles_per_ms
    for number, period in enumerate(PERIODS_S):
        configuration.add_task(
            name=f"t{number}",
            identifier=number + 1,
            period=period,
            activation_date=0,
            wcet=0.11 * period,
            deadline=period,
            abort_on_miss=False,
        )
    for number in range(TRACKS):
        configuration.add_processor(name=f"track{number}", identifier=number + 1)
    configuration.scheduler_info.clas = NonPreemptiveEdf
    model = Model(configuration)
    started = time.process_time()
    model.run_model()
    elapsed = time.process_time() - started
    finished = sum(job.end_date is not None for task in model.results.tasks.values() for job in task.jobs)
    return finished / elapsed


def memory_mib(jobs: int) -> float:
    """The peak memory of a process that simulates so many jobs, log off."""
    code = (
        "import sys; sys.path.insert(0, 'benchmarks'); import simulation_speed as s; "
        f"s.freshline_jobs_per_second({jobs}); print(s.peak_mib())"
    )
    return float(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    )


def peak_mib() -> float:
    # Not getrusage: its maximum is inherited from the parent, whom SimSo has made large.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ratios = []
    for _ in range(arguments.rounds):
        ours, theirs = freshline_jobs_per_second(arguments.jobs), simso_jobs_per_second(arguments.jobs)
        ratios.append(ours / theirs)
        print(f"jobs a CPU-second: freshline {ours:,.0f}, SimSo {theirs:,.0f}, ratio {ours / theirs:.1f}")
    median = sorted(ratios)[len(ratios) // 2]
    print(f"ratio, median of {arguments.rounds}: {median:.1f} (at least 25 is asked)")
    short, long = memory_mib(arguments.jobs), memory_mib(20 * arguments.jobs)
    print(f"memory: {short:.1f} MiB for {arguments.jobs:,} jobs, {long:.1f} MiB for 20 times as many")


if __name__ == "__main__":
    main()
