"""All kinds of work at once, live on two nodes and two cores, with an outage of a feed and a killed node.

Six feeds, tables under `aus-slack`, queries under `lrm`, classes under `rds-quota` with requests over HTTP,
steps with outputs, `shed` and `discard`. Then every row is looked for, and every promise was kept, or the
status names a broken assumption of it.

    .venv/bin/python benchmarks/live_warehouse.py --minutes 10
    .venv/bin/python benchmarks/live_warehouse.py --minutes 10 --kill centre

Exit code 1: a row was lost or doubled, or a broken promise has no explanation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.definitions.load import load
from freshline.storage.control.layout import StorageLayout
from freshline.testing.network import Generator
from freshline_lab.campaigns.kills.node_kills import NodesRun
from freshline_lab.campaigns.promises.clients import Clients
from freshline_lab.campaigns.promises.verdicts import StatusWatch, Verdicts
from freshline_lab.campaigns.promises.whole_city import NODES, CityRows, specs, write_city
from freshline_lab.experiments.noise import Noise

PATIENCE_S = 600.0
DOWN = "vehicles"
# As shares of the run: the outage begins, and the node is killed.
OUTAGE_AT, KILL_AT = 0.25, 0.6
QUESTIONS = {
    "operators": "SELECT road, count(*) AS cars FROM vehicles GROUP BY road",
    "guests": "SELECT garage, min(free) AS free FROM parking GROUP BY garage",
}
ASK_EVERY_S, DEADLINE_S = 4.0, 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--outage", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--kill", choices=NODES, default="edge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="keep the project in this new folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        return trial(folder, 60 * arguments.minutes, arguments.outage, arguments.kill, arguments.seed)


def trial(folder: Path, run_s: float, outage_s: float, killed: str, seed: int) -> int:
    """Runs the city, prints what was found, and returns the exit code."""
    file = write_city(folder)
    warehouse = load(file)
    watch = StatusWatch(StorageLayout(folder / "warehouse"), NODES)
    asking = Clients(file, QUESTIONS, ASK_EVERY_S, DEADLINE_S)
    run = NodesRun(file, output=folder / "said.txt", cold=False)
    try:
        run.wait_until(lambda: all(run.is_settled(node) for node in NODES), PATIENCE_S)
        start = clock()
        outage = (OUTAGE_AT * run_s, OUTAGE_AT * run_s + outage_s)
        print(f"feed {DOWN} is down from second {outage[0]:.0f} to {outage[1]:.0f}", flush=True)
        generator = Generator(specs(DOWN, outage), folder / "landing", seed, start)
        with Noise() as noise, watch, asking:
            deliver(generator, run, run_s, killed, start)
            end = clock()
            generator.due(end)
        run.process.send_signal(signal.SIGTERM)
        code, _ = run.end(PATIENCE_S)
    finally:
        run.stop(60)
    print(noise.sentence(start / SECOND))
    print(f"run: exit code {code}; it said:\n{(folder / 'said.txt').read_text(errors='replace')[-2000:]}")
    wrong = [f"exit code {code} of the run"] * (code not in (0, 1, 4))
    wrong += drained(file)
    wrong += rows(folder, CityRows(generator, end))
    verdicts = Verdicts(warehouse, watch, folder / "warehouse", (start, end))
    found = [*verdicts.tables(), *verdicts.outputs(), *verdicts.queries()]
    for verdict in [*found, *verdicts.classes(asking, killed)]:
        print(verdict)
        if not verdict.is_explained:
            wrong.append(f"{verdict.what}: {verdict.found}, and the status names no broken assumption")
    print("all notes of the statuses:")
    for status in watch.statuses:
        began_s = (status.started_us - start) / SECOND
        print(f"  {status.node}, started at second {began_s:.0f}, {status.quarantined} files in quarantine:")
        print("".join(f"    {line}\n" for line in status.broken_assumptions), end="")
    print("\n".join(f"WRONG: {what}" for what in wrong) or "all held", flush=True)
    return 1 if wrong else 0


def deliver(generator: Generator, run: NodesRun, run_s: float, killed: str, start: int) -> None:
    """Writes files for that long, and kills a node on the way."""
    stop = threading.Event()
    writer = threading.Thread(target=generator.run, args=(stop,), name="writer")
    writer.start()
    try:
        time.sleep(KILL_AT * run_s)
        pid = run.kill(killed)
        at_s = (clock() - start) / SECOND
        print(f"{killed} killed at second {at_s:.0f}", flush=True)
        run.wait_until(lambda: run.is_up(killed, pid), PATIENCE_S)
        print(f"{killed} runs again at second {(clock() - start) / SECOND:.0f}", flush=True)
        time.sleep(max(0.0, run_s - (clock() - start) / SECOND))
    finally:
        stop.set()
        writer.join()


def drained(file: Path) -> list[str]:
    """Loads what is left."""
    run = NodesRun(file, "--drain", output=file.parent / "drained.txt")
    try:
        code, _ = run.end(PATIENCE_S)
    finally:
        run.stop(60)
    return [] if code in (0, 1) else [f"exit code {code} of the drain"]


def rows(folder: Path, city: CityRows) -> list[str]:
    """Prints how many rows each table has, and returns what is wrong."""
    wrong = []
    print(f"{'table':<10}{'rows':>8}{'lost':>6}{'twice':>6}")
    for table, expected, lost, doubled in city.compare(folder):
        print(f"{table:<10}{expected:>8,}{lost:>6}{doubled:>6}")
        if lost or doubled:
            wrong.append(f"{table} lacks {lost} rows and has {doubled} too many")
    print(f"parking: {city.discarded(folder)} of {len(city.files['parking'])} files discarded", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
