"""Paper 001's outage on Spark, at a hundredth of its time: 14 feeds of generated files, two tracks."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from freshline.definitions.duration import SECOND
from freshline.experiments.outage_recovery import DRAWN, LATE, OUTAGE_S, PERIODS, POLICIES, Policy, phases_s
from freshline.testing.network import FeedSpec, Generator

_HUNDREDTH = 100
_ROWS = {300: 8_000, 900: 100_000}  # of a file, by the paper's period: about 0.11·p of work
_HASHED = "sha2(sha2(sha2(text, 256), 256), 256) AS text"
_JITTER_MS = 300  # a real file is found a little after it was due

Loads = dict[str, list[tuple[int, int]]]  # by table: (instant, freshness reached)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one table fared."""

    table: str
    lag_periods: float  # at worst
    # Since the start: when its lag fell to a period for good; None: it did not, or never was above.
    caught_up_s: float | None


def feeds() -> list[FeedSpec]:
    """The feeds with the phases of seed 0, all a hundredth as long."""
    down = ((OUTAGE_S[0] / _HUNDREDTH, OUTAGE_S[1] / _HUNDREDTH),)
    return [
        FeedSpec(
            name,
            "csv",
            period / _HUNDREDTH,
            _ROWS[period],
            phases_s(0)[name] / _HUNDREDTH,
            kind="records",
            outages=down if name in LATE else (),
        )
        for name, period in PERIODS.items()
    ]


def project(policy: Policy, specs: list[FeedSpec]) -> str:
    """The warehouse as a user's file."""
    pool = f"tracks: 2, policy: {policy.name}"
    if policy.name in ("aus", "aus-slack"):
        pool += f", provisioning: {policy.provisioning}"
    if policy.name == "prp":
        pool += f", cluster_factor: {policy.cluster_factor}"
    lines = ["name: outage", "storage: warehouse", f"pools: {{updates: {{{pool}}}}}", "feeds:"]
    lines += [
        f'  {spec.name}: {{path: landing/{spec.name}, format: csv, schema: "{spec.schema}", timestamp: ts, '
        f"period: {spec.period_us // 1_000}ms, phase: {spec.phase_us // 1_000}ms, jitter: {_JITTER_MS}ms}}"
        for spec in specs
    ]
    lines.append("tables:")
    lines += [
        f'  {spec.name}: {{feed: {spec.name}, select: "SELECT ts, number, {_HASHED} FROM {spec.name}", '
        f"cost: {{startup: {spec.period_us // 100_000}ms, rate: 0.1, variability: 0.2}}}}"
        for spec in specs
    ]
    return "\n".join([*lines, ""])


def judge(loads: Loads, spec: FeedSpec, generator: Generator, start: int, end: int) -> Verdict:
    """From when files came and when they were loaded."""
    numbers = generator.numbers(spec.name, end)
    arrivals = [(generator.delivered_us(spec.name, n), 1, generator.due_us(spec.name, n)) for n in numbers]
    # A load before an arrival at the same instant, as in simulation.
    loaded = [(at, 0, reached) for at, reached in loads.get(spec.name, []) if at <= end]
    edge = fresh = start
    lag_us_max = 0
    caught_up: int | None = None
    for at, arrived, instant in sorted(arrivals + loaded):
        if arrived:
            edge = max(edge, instant)
        else:
            fresh = max(fresh, instant)
        lag_us = edge - fresh
        lag_us_max = max(lag_us_max, lag_us)
        if lag_us > spec.period_us:
            caught_up = None
        elif caught_up is None:
            caught_up = at
    was_behind = lag_us_max > spec.period_us
    caught_up_s = (caught_up - start) / SECOND if was_behind and caught_up is not None else None
    return Verdict(spec.name, lag_us_max / spec.period_us, caught_up_s)


def run_live(policy: Policy, seconds: int) -> list[Verdict]:
    """Runs one policy on Spark in a temporary folder."""
    from freshline.definitions.load import load
    from freshline.live.runner import Runner

    specs = feeds()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "freshline.yml"
        file.write_text(project(policy, specs), encoding="utf-8")
        with Runner(load(file), folder, folder / "warehouse", master="local[2]") as runner:
            start = _next_common_multiple()
            generator = Generator(specs, folder / "landing", 0, start)
            stop = threading.Event()
            thread = threading.Thread(target=generator.run, args=(stop,), daemon=True)
            thread.start()
            try:
                runner.run(start + seconds * SECOND - time.time_ns() // 1_000)
            finally:
                stop.set()
                thread.join()
            (log,) = runner.layout.logs.iterdir()
        end = start + seconds * SECOND
        loads = loads_of(log.read_text(encoding="utf-8"))
    return [judge(loads, spec, generator, start, end) for spec in specs]


def _next_common_multiple() -> int:
    """The feeds' phases count from a whole multiple of all periods."""
    period_us = max(PERIODS.values()) * SECOND // _HUNDREDTH
    return (time.time_ns() // 1_000 // period_us + 1) * period_us


def loads_of(log: str) -> Loads:
    """What a run's journal says was loaded when."""
    loads: Loads = {}
    for line in log.splitlines()[1:]:
        call = json.loads(line)
        for event in call.get("events", ()):
            if "finished" in event:
                loads.setdefault(event["finished"], []).append((call["now"], event["freshness"]))
    return loads


def run(seconds: int, *, quiet: bool = False) -> dict[str, Any]:
    """Runs the policies of the figure one after the other, each in a process and a JVM of its own."""
    record: dict[str, Any] = {"seconds": seconds, "outcomes": []}
    spawn = multiprocessing.get_context("spawn")
    for policy in (policy for policy in POLICIES if policy.label in DRAWN):
        with ProcessPoolExecutor(1, mp_context=spawn) as executor:
            verdicts = executor.submit(run_live, policy, seconds).result()
        record["outcomes"].append({"policy": policy.label, "tables": [asdict(one) for one in verdicts]})
        if not quiet:
            _show(policy.label, verdicts)
    return record


def _show(label: str, verdicts: list[Verdict]) -> None:
    worst = max((one for one in verdicts if one.table not in LATE), key=lambda verdict: verdict.lag_periods)
    print(f"{label}: worst healthy lag {worst.lag_periods:.2f} periods ({worst.table})")
    for one in verdicts:
        if one.table in LATE:
            print(f"  {one.table}: {_way_back(one)} (down until {OUTAGE_S[1] // _HUNDREDTH} s)", flush=True)


def _way_back(verdict: Verdict) -> str:
    if verdict.lag_periods <= 1:
        return "never behind"
    return "not caught up" if verdict.caught_up_s is None else f"caught up at {verdict.caught_up_s:.0f} s"
