"""Runs a whole warehouse on Spark for a while, drains it, and compares its rows and its promises."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from freshline.base.clock import clock
from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.nodes.supervisor import INCOMPLETE
from freshline.service.client import NoAnswer
from freshline.service.query import query as ask
from freshline.storage.control.layout import StorageLayout
from freshline.testing.network import Generator
from freshline_lab.campaigns.kills.node_kills import NodesRun
from freshline_lab.campaigns.whole.live_projects import LiveProject, Row, live_project
from freshline_lab.campaigns.whole.report import WholeReport

_PATIENCE_S: Final = 600.0
_FRESHNESS: Final = "freshline.freshness"
# 1: a target was exceeded, which a slow machine may cause. Other codes are errors.
_ENDED: Final = (0, 1)


def check_live(seed: int, folder: Path, run_s: float = 30.0) -> WholeReport:
    """Runs the project of that seed; then what is left is loaded, and all rows are compared.

    A warehouse with two nodes loses one of them (kill -9) in every second run.
    """
    found = WholeReport(seed)
    project = live_project(seed)
    file = project.write(folder)
    nodes = list(project.document.get("nodes", ()))
    rng = random.Random(f"live run:{seed}")
    killed = rng.choice(nodes) if len(nodes) > 1 and rng.random() < 0.5 else None
    run = NodesRun(file, output=folder / "said.txt")
    try:
        run.wait_until(lambda: all(run.is_up(node) for node in nodes or [None]), _PATIENCE_S)
        generator = Generator(project.feeds, folder / "landing", seed, clock())
        _deliver(generator, run_s, lambda: _disturb(found, project, file, run, killed))
        until_us = clock()
        generator.due(until_us)
        run.process.send_signal(signal.SIGTERM)
        code, summary = run.end(_PATIENCE_S)
    finally:
        run.stop(60)
    # A node that is just starting again when the run is to end leaves data.
    allowed = _ENDED if killed is None else (*_ENDED, INCOMPLETE)
    found.wrong += _ended("run", code, allowed, folder / "said.txt")
    found.wrong += _bounds(found.counts, summary, killed)
    drained = NodesRun(file, "--drain", output=folder / "drained.txt")
    try:
        code, _ = drained.end(_PATIENCE_S)
    finally:
        drained.stop(60)
    found.wrong += _ended("drain", code, _ENDED, folder / "drained.txt")
    layout = StorageLayout(folder / "warehouse")
    found.wrong += _rows(found.counts, project, generator, layout, until_us)
    found.wrong += _replays(found.counts, layout, nodes)
    return found


def _deliver(generator: Generator, run_s: float, halfway: Callable[[], None]) -> None:
    """Writes files for that long; something else happens halfway."""
    stop = threading.Event()
    writer = threading.Thread(target=generator.run, args=(stop,), name="writer")
    writer.start()
    try:
        time.sleep(run_s / 2)
        halfway()
        time.sleep(run_s / 2)
    finally:
        stop.set()
        writer.join()


def _disturb(found: WholeReport, project: LiveProject, file: Path, run: NodesRun, killed: str | None) -> None:
    """Asks every class, and kills a node."""
    for name in project.document.get("classes", ()):
        found.counts["requests"] += 1
        try:
            ask(
                "SELECT src, sum(bytes) AS b FROM t0 GROUP BY src",
                class_name=name,
                deadline="5s",
                project=file,
            )
            found.counts["requests answered"] += 1
        except NoAnswer as error:
            if error.code == "internal":
                found.wrong.append(f"request: {name}: {error}")
        except InputError as error:
            found.wrong.append(f"request: {name}: {error}")
    if killed is not None:
        run.kill(killed)
        found.counts["nodes killed"] += 1


def _ended(what: str, code: int, allowed: tuple[int, ...], said: Path) -> Iterator[str]:
    text = said.read_text(encoding="utf-8", errors="replace")
    if code not in allowed:
        yield f"exit: {what} ended with {code}: {text[-500:]}"
    if "Traceback" in text:
        yield f"exception: {what}: {text[text.index('Traceback') :][:2000]}"


def _bounds(counts: Counter[str], summary: dict[str, Any], killed: str | None) -> Iterator[str]:
    """A bound that was exceeded has a reason: a broken assumption, or a node that was down."""
    for table in summary.get("tables", ()):
        counts["bounds"] += table["staleness_bound"] is not None
        if table["verdict"] == "above bound":
            counts["bounds exceeded"] += 1
            if not summary["broken_assumptions"] and killed is None:
                yield f"bound: {table['name']} exceeded it, and no assumption is named: {table}"
    for output in summary.get("outputs", ()):
        counts["outputs"] += 1
        counts["outputs late"] += bool(output.get("misses"))


def _rows(
    counts: Counter[str], project: LiveProject, generator: Generator, layout: StorageLayout, until_us: int
) -> Iterator[str]:
    """Each table has the rows of its query up to its freshness, once; files may be discarded as a whole."""
    for name, entry in project.tables.items():
        stored = DeltaTable(layout.table(name))
        columns = project.columns(name)
        data = stored.to_pyarrow_dataset().to_table(columns=columns)
        found: Counter[Row] = Counter(zip(*(data[column].to_pylist() for column in columns), strict=True))
        fresh = utc(stored.transaction_version(_FRESHNESS) or 0)
        expected = project.rows(name, generator, until_us)
        if "feed" not in entry:
            expected = Counter({row: count for row, count in expected.items() if row[0] <= fresh})
        counts["rows"] += expected.total()
        lost, doubled = (expected - found).total(), (found - expected).total()
        if doubled or (lost and "discard" not in entry):
            yield f"rows: {name} has {found.total()}, lacks {lost} and has {doubled} too many, up to {fresh}"


def _replays(counts: Counter[str], layout: StorageLayout, nodes: list[str]) -> Iterator[str]:
    for control in layout.controls(nodes):
        for log in sorted(control.logs.glob("*.jsonl")):
            lines = log.read_text(encoding="utf-8").splitlines()
            with suppress(ValueError):  # the last line of a node that was killed may be cut short
                header, *calls = map(json.loads, lines)
                agreed, difference = replay(kernel_of(header), calls, header)
                counts["calls replayed"] += agreed
                if difference is not None:
                    yield f"replay: call {agreed + 1} of {len(calls)} in {log.name} differs: {difference}"
