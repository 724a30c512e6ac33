"""A step of an output beside the tables of another pool, live: does it cost what `plan` counts for its cores?

First the step runs alone, and its cost is measured. `plan` then gets this cost and finds the least deadline
that it can prove: once as if tracks did not slow each other down, and once with the cores counted. The step
runs again with the second deadline, beside a pool of two tracks whose files come at the same instants. Rows
are compared with both deadlines.

    .venv/bin/python benchmarks/live_cores.py --seconds 300

Exit code 1: a row came after the deadline that is proven with cores counted, and no assumption was broken.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import mean

from freshline.base.clock import clock
from freshline.base.duration import MILLISECOND, SECOND
from freshline.cli.printing.outputs import with_placement
from freshline.definitions.load import load, loads
from freshline.planning.costs.fit import PastRun
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.sparks import with_sparks
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.campaigns.kills.node_kills import NodesRun
from freshline_lab.campaigns.promises.commits import commits_of
from freshline_lab.experiments.noise import Noise

PATIENCE_S = 600.0
NODE, STEP, TABLES = "here", "readings", ("left", "right")
PERIOD_S, ROWS = 20, 2_000
HEADROOM = 1.1  # of the declared cost over the worst that was measured alone
WARMING = 2  # the first files of a run, which are not measured
FEED = (
    '{{path: landing/{name}, format: csv, schema: "ts timestamp, number long, text string", timestamp: ts, '
    "period: {period}s, jitter: 500ms, timestamp_jitter: 500ms, rows: {rate}, {more}node: here}}"
)
SELECT = '"SELECT ts, number, sha2(repeat(text, {times}), 256) AS hash FROM {name}"'


@dataclass(frozen=True, slots=True)
class Project:
    """The step, and maybe tables beside it, with one cost for all of them."""

    times: int  # how much a record is hashed
    cost: str
    deadline_ms: int = 120_000
    beside: bool = False

    @property
    def feeds(self) -> list[FeedSpec]:
        names = [STEP, *TABLES] if self.beside else [STEP]
        return [FeedSpec(name, "csv", PERIOD_S, ROWS, kind="records") for name in names]

    @property
    def text(self) -> str:
        lines = ["name: cores", "storage: warehouse", "cores: 2", 'nodes: {here: {master: "local[2]"}}']
        if self.beside:
            lines.append("pools: {updates: {tracks: 2, policy: edf, node: here}}")
        lines.append("feeds:")
        for spec in self.feeds:
            more = f"age: {PERIOD_S + 1}s, burst: {ROWS}, " if spec.name == STEP else ""
            feed = FEED.format(name=spec.name, period=PERIOD_S, rate=ROWS / PERIOD_S, more=more)
            lines.append(f"  {spec.name}: {feed}")
        lines.append("tables:")
        for spec in self.feeds:
            own = f"deadline: {self.deadline_ms}ms" if spec.name == STEP else "pool: updates"
            select = SELECT.format(times=self.times, name=spec.name)
            lines.append(f"  {spec.name}: {{feed: {spec.name}, select: {select}, {own}, cost: {self.cost}}}")
        return "\n".join([*lines, ""])

    def plan(self) -> Plan:
        return with_sparks(with_placement(make_plan(loads(self.text)), {}))

    def proven_ms(self) -> int | None:
        """The least deadline that `plan` proves, in whole tenths of a second; None if there is none."""
        tenths = range(10 * PERIOD_S, 60 * PERIOD_S)
        least = bisect_left(tenths, True, key=lambda each: self._proves(100 * each))
        return 100 * tenths[least] if least < len(tenths) else None

    def _proves(self, deadline_ms: int) -> bool:
        tried = Project(self.times, self.cost, deadline_ms, self.beside)
        return all(output.holds for output in tried.plan().outputs)


@dataclass(frozen=True, slots=True)
class Measured:
    """A run: what the step cost, the ages of its rows, and the broken assumptions."""

    runs: Sequence[PastRun]
    ages_us: Sequence[int]
    notes: Sequence[str]

    @property
    def costs_s(self) -> list[float]:
        return [run.duration_us / SECOND for run in self.runs[WARMING:]]

    def late(self, deadline_ms: int) -> int:
        return sum(age > deadline_ms * MILLISECOND for age in self.ages_us)

    def __str__(self) -> str:
        costs, busy = self.costs_s, [run.busy for run in self.runs[WARMING:]]
        return (
            f"{len(costs)} jobs, {mean(costs):.2f} s on average, {max(costs):.2f} s at worst; "
            f"at start and end at least {mean(busy):.1f} tracks busy; "
            f"rows at most {max(self.ages_us) / SECOND:.2f} s old"
        )


def measured(project: Project, run_s: float, seed: int) -> Measured:
    """Runs the project for that long, from when its node is warm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for spec in project.feeds:
            (folder / "landing" / spec.name).mkdir(parents=True)
        file = folder / "freshline.yml"
        file.write_text(project.text, encoding="utf-8")
        load(file)
        run = NodesRun(file, output=folder / "said.txt", cold=False)
        try:
            run.wait_until(lambda: run.is_settled(NODE), PATIENCE_S)
            began = clock()
            generator = Generator(project.feeds, folder / "landing", seed, began)
            stop = threading.Event()
            timer = threading.Timer(run_s, stop.set)
            timer.start()
            try:
                with Noise() as noise:
                    generator.run(stop)
            finally:
                timer.cancel()
            run.process.send_signal(signal.SIGTERM)
            code, summary = run.end(PATIENCE_S)
        finally:
            run.stop(60)
        assert code in (0, 1, 4), (folder / "said.txt").read_text(errors="replace")
        layout = StorageLayout(folder / "warehouse")
        history = History(layout.control(NODE).history, read_only=True)
        commits = commits_of(layout.table(STEP))
        ages_us = [each.at - row for each in commits[WARMING:] for row in each.rows]
        print(noise.sentence(began / SECOND), flush=True)
        return Measured(history.runs(STEP), ages_us, summary["broken_assumptions"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="of the run beside tables")
    parser.add_argument("--alone", type=float, default=90.0, metavar="SECONDS", help="of the run alone")
    parser.add_argument("--times", type=int, default=10_000, help="how much each record is hashed")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    alone = measured(Project(arguments.times, "{startup: 9s, loaded: true}"), arguments.alone, arguments.seed)
    tasks = max(run.tasks for run in alone.runs)
    print(f"alone: {alone}; {tasks} tasks at once", flush=True)
    cost_ms = ceil(max(alone.costs_s) * HEADROOM * 1_000)
    blind = Project(arguments.times, f"{{startup: {cost_ms}ms, loaded: true}}", beside=True).proven_ms()
    counting = Project(arguments.times, f"{{startup: {cost_ms}ms, tasks: {tasks}}}", beside=True)
    counted = counting.proven_ms()
    if blind is None or counted is None:
        print("no deadline can be proven: hash less")
        return 2
    project = Project(arguments.times, counting.cost, counted, beside=True)
    plan = project.plan()
    assert plan.placed is not None
    (spark,) = plan.sparks
    counted_s = plan.placed.costs_us[STEP] / SECOND
    print(
        f"plan: cost {cost_ms / 1_000:.2f} s counts as {counted_s:.2f} s, factor {float(spark.factor)}, "
        f"wait {spark.wait_us / SECOND:.2f} s; least proven deadline {blind / 1_000:.1f} s without cores, "
        f"{counted / 1_000:.1f} s with cores counted",
        flush=True,
    )
    beside = measured(project, arguments.seconds, arguments.seed)
    ratio = mean(beside.costs_s) / mean(alone.costs_s)
    worst = max(beside.costs_s) / max(alone.costs_s)
    print(f"beside: {beside}; {ratio:.2f} times as long on average, the worst {worst:.2f} times")
    alone_ms = max(alone.ages_us) // MILLISECOND + 1
    was_late = f"{beside.late(alone_ms)} of {len(beside.ages_us)} rows older than any alone"
    print(f"{was_late} ({alone_ms / 1_000:.2f} s)")
    rows, late_blind, late = len(beside.ages_us), beside.late(blind), beside.late(counted)
    print(f"{late_blind} of {rows} rows after the deadline without cores, {late} with cores counted")
    print("broken assumptions:\n" + "".join(f"  {line}\n" for line in beside.notes), end="")
    over = max(run.duration_us for run in beside.runs) / SECOND > counted_s
    broken = any(f" {STEP}: " in line or f"feed {STEP}" in line for line in beside.notes)
    if late and not broken:
        print("WRONG: a proven output was late, and the status names no broken assumption")
        return 1
    print(f"the counted cost was {'exceeded' if over else 'kept'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
