"""`freshline demo`: the warehouse of a network on an embedded Spark, with an outage in the middle."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.demo_city import demo_city
from freshline.cli.plan import plan_record, show_plan
from freshline.cli.run import end_in_order, follow, summary_record
from freshline.cli.shared import JsonOption, console, duration_option, print_json
from freshline.definitions.load import load
from freshline.live.status.status import WarehouseStatus
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan

if TYPE_CHECKING:
    from freshline.testing.network import FeedSpec

_MARK = ".freshline-demo"
_DOWN = "packets"
# When the feed goes down and comes back, as shares of the duration.
_OUTAGE = (0.35, 0.6)
_TARGETS = {"packets": 25, "flows": 25, "alerts": 35, "routers": 80, "dns": 30, "counters": 40}

_TABLES = """\
  traffic:
    sql: |
      SELECT greatest(p.ts, f.ts) AS ts, p.src, p.bytes, f.packets
      FROM packets p JOIN flows f
        ON p.src = f.src AND p.dst = f.dst
        AND f.ts BETWEEN p.ts - INTERVAL 3 SECONDS AND p.ts + INTERVAL 3 SECONDS
    period: 6 seconds
    lookback: 3 seconds
    target_lag: 50 seconds
    cost: {startup: 1200ms, rate: 0.01}
  resolving:
    sql: |
      SELECT window(ts, '10 seconds').start AS ts, domain, count(*) AS questions, avg(millis) AS millis
      FROM dns GROUP BY window(ts, '10 seconds'), domain
    period: 10 seconds
    align: 10 seconds
    target_lag: 70 seconds
    cost: {startup: 1200ms, rate: 0.01}
  incidents:
    sql: |
      SELECT greatest(a.ts, c.ts) AS ts, a.router, a.severity, c.errors
      FROM alerts a JOIN counters c
        ON a.router = c.router AND c.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 2 SECONDS
    period: 6 seconds
    lookback: 2 seconds
    target_lag: 70 seconds
    cost: {startup: 1200ms, rate: 0.01}
  hosts:
    sql: |
      SELECT window(ts, '10 seconds').start AS ts, src, sum(bytes) AS bytes, max(packets) AS packets
      FROM traffic GROUP BY window(ts, '10 seconds'), src
    period: 10 seconds
    align: 10 seconds
    target_lag: 2 minutes
    cost: {startup: 1200ms, rate: 0.01}
"""


def demo(
    into: Annotated[
        Path, typer.Option(help="Where it goes; an earlier demonstration there is replaced.", metavar="DIR")
    ] = Path("out/demo"),
    for_: Annotated[
        str | None,
        typer.Option("--for", help="How long it runs (default 60s, with --all 90s).", metavar="DURATION"),
    ] = None,
    all_kinds: Annotated[
        bool, typer.Option("--all", help="A city's warehouse instead: all kinds of work, on two nodes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The seed of the data.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Run a network's warehouse on an embedded Spark: six feeds, two derived levels, one outage.

    Example: freshline demo --for 45s

    Every kind of work beside every other, on two nodes: freshline demo --all
    """
    for_us = duration_option(for_ or ("90s" if all_kinds else "60s"), "--for")
    _prepare(into)
    screen = None if as_json else console()
    if all_kinds:
        raise typer.Exit(demo_city(into, for_us, seed, screen))
    _demo_network(into, for_us, seed, screen)


def _demo_network(into: Path, for_us: int, seed: int, screen: Console | None) -> None:
    from freshline.base.clock import clock
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner
    from freshline.live.status.summary import show_summary
    from freshline.live.tables.staleness_picture import draw_staleness
    from freshline.testing.network import NETWORK, Generator

    down = (_OUTAGE[0] * for_us / SECOND, _OUTAGE[1] * for_us / SECOND)
    file = _write_project(into)
    warehouse = load(file)
    plan = make_plan(warehouse)
    if screen is not None:
        show_plan(screen, plan, all_rows=False)
        screen.print(f"\nFeed {_DOWN} will be down from second {down[0]:.0f} to {down[1]:.0f}.", style="dim")
        screen.print("Starting Spark ...", style="dim")
    with Runner(warehouse, into, into / "warehouse", RunOptions(warm="all")) as runner:
        end_in_order(runner)
        start = clock()
        specs = [replace(spec, outages=(down,)) if spec.name == _DOWN else spec for spec in NETWORK]
        stop = threading.Event()
        generator = Generator(specs, into / "landing", seed, start)
        thread = threading.Thread(target=generator.run, args=(stop,), daemon=True)
        thread.start()
        runner.records.observation.keep_samples = True
        try:
            follow(screen, runner, for_us)
        finally:
            stop.set()
            thread.join(10)
        status = runner.status()
        samples = {name: seen.samples for name, seen in runner.records.observation.tables.items()}
    outage = (f"{_DOWN} down", start + round(down[0] * SECOND), start + round(down[1] * SECOND))
    picture = draw_staleness(samples, status, into / "staleness.png", [outage])
    if screen is None:
        print_json(_record(plan, status, runner.stopped_because, down, picture))
        return
    show_summary(screen, status, status.started_us, status.at_us, runner.records.observation.asserted_max_us)
    screen.print(
        f'Drawn: {picture}. Ask the tables: freshline sql -p {into} "SELECT * FROM hosts"', highlight=False
    )


def _record(
    plan: Plan,
    status: WarehouseStatus,
    stopped_because: str | None,
    down: tuple[float, float],
    picture: Path,
) -> dict[str, Any]:
    return {
        "plan": plan_record(plan),
        "run": summary_record(status, stopped_because),
        "outage": {"feed": _DOWN, "from": down[0], "to": down[1]},
        "picture": str(picture),
    }


def _prepare(folder: Path) -> None:
    """Makes an empty folder; an earlier demonstration there is removed."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise InputError(f"{folder} holds something else", "Name another folder with --into")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


def _write_project(folder: Path) -> Path:
    file = folder / "freshline.yml"
    file.write_text(_project(), encoding="utf-8")
    return file


def _project() -> str:
    from freshline.testing.network import NETWORK  # pyarrow is slow to import

    lines = ["name: network", "storage: warehouse", "pools:", "  updates: {tracks: 2, policy: edf}", "feeds:"]
    lines += [_feed(spec) for spec in NETWORK]
    lines.append("tables:")
    for spec in NETWORK:
        target = f"target_lag: {_TARGETS[spec.name]} seconds"
        lines.append(f"  {spec.name}: {{feed: {spec.name}, {target}, cost: {{startup: 700ms, rate: 0.01}}}}")
    return "\n".join([*lines, _TABLES])


def _feed(spec: FeedSpec) -> str:
    fields = f'format: {spec.format}, schema: "{spec.schema}", timestamp: ts'
    times = f"period: {spec.period_us // 1000}ms, phase: {spec.phase_us // 1000}ms, jitter: 500ms"
    return f"  {spec.name}: {{path: landing/{spec.name}, {fields}, {times}, timestamp_jitter: 500ms}}"
