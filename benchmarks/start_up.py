"""How long it takes from `freshline run` to the first commit: of 42 tables with files waiting, and of 2.

Both warehouses are run from their beginning, in turns, each in a process of its own that is ended once a
table is loaded. The 42 tables load feeds of three formats and have selects, aggregates and joins;
some of their plans are alike, some are not.

    .venv/bin/python benchmarks/start_up.py
    .venv/bin/python benchmarks/start_up.py --runs 1 --tables 12 --loaded     # until every table is loaded
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

FEW: Final = 2
ROWS: Final = 1_000
FILES: Final = 3  # that wait for each feed
PATIENCE_S: Final = 600.0
_LOOK_EVERY_S: Final = 0.01
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FORMATS: Final = ("csv", "json", "parquet")
_COLUMNS: Final = "ts timestamp, src string, n int, bytes long"
# Of base tables, in turn; `{feed}` is the table's own.
_SELECTS: Final = (
    None,
    "SELECT ts, src, n FROM {feed} WHERE n > 10",
    "SELECT ts, upper(src) AS src, bytes * 8 AS bits, n FROM {feed}",
)
# Of derived tables, in turn; `{one}` and `{other}` are base tables.
_QUERIES: Final = (
    "SELECT ts, src, sum(n) AS n FROM {one} GROUP BY ts, src",
    "SELECT ts, src, n FROM {one} WHERE n % 2 = 0",
    "SELECT a.ts, a.src, b.n FROM {one} a JOIN {other} b ON a.ts = b.ts AND a.src = b.src",
    "SELECT ts, src, count(*) AS rows, max(n) AS most FROM {one} GROUP BY ts, src",
)


@dataclass(frozen=True, slots=True)
class Start:
    """One start: to the first commit, and to the first of every table where that was waited for."""

    took_s: float
    cpu_s: float
    loaded_s: float | None


def make_project(folder: Path, tables: int) -> None:
    """A warehouse of so many tables, half of them derived, with files waiting for every feed."""
    bases = [f"base{number}" for number in range(tables - tables // 2)]
    lines = ["name: startup", "pools: {updates: {tracks: 2}}", "feeds:"]
    for number, name in enumerate(bases):
        kind = _FORMATS[number % len(_FORMATS)]
        lines.append(
            f"  {name}: {{path: landing/{name}, format: {kind}, schema: '{_COLUMNS}', "
            "timestamp: ts, period: 10s}"
        )
    lines.append("tables:")
    for number, name in enumerate(bases):
        select = _SELECTS[number // len(_FORMATS) % len(_SELECTS)]
        given = "" if select is None else f', select: "{select.format(feed=name)}"'
        lines.append(f"  {name}: {{feed: {name}{given}}}")
    for number in range(tables // 2):
        one, other = bases[number % len(bases)], bases[(number + 1) % len(bases)]
        query = _QUERIES[number % len(_QUERIES)].format(one=one, other=other)
        lines.append(f'  derived{number}: {{sql: "{query}", period: 10s}}')
    folder.mkdir(parents=True)
    (folder / "freshline.yml").write_text("\n".join([*lines, ""]), encoding="utf-8")
    began_s = time.time() - 10 * FILES  # the same for all: joins find what belongs together
    for number, name in enumerate(bases):
        landing = folder / "landing" / name
        landing.mkdir(parents=True)
        for file in range(FILES):
            _write(landing / f"{file}.{_FORMATS[number % len(_FORMATS)]}", began_s + 10 * file)


def _write(path: Path, at_s: float) -> None:
    at_us = int(at_s * 1_000_000)
    rows = [(at_us + row, f"host{row % 20}", row % 100, row * 1_000) for row in range(ROWS)]
    if path.suffix == ".parquet":
        columns = pa.schema(
            [
                ("ts", pa.timestamp("us", "UTC")),
                ("src", pa.string()),
                ("n", pa.int32()),
                ("bytes", pa.int64()),
            ]
        )
        arrays = [
            pa.array(values, kind)
            for values, kind in zip(zip(*rows, strict=True), columns.types, strict=True)
        ]
        pq.write_table(pa.table(arrays, schema=columns), path)
        return
    stamped = [(_stamp(at), *rest) for at, *rest in rows]
    if path.suffix == ".csv":
        lines = ["ts,src,n,bytes", *(",".join(map(str, row)) for row in stamped)]
    else:
        lines = [json.dumps(dict(zip(("ts", "src", "n", "bytes"), row, strict=True))) for row in stamped]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _stamp(at_us: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_us // 1_000_000)) + f".{at_us % 1_000_000:06d}Z"


def start(project: Path, until_loaded: bool) -> Start:
    """Runs the warehouse from its beginning until something is loaded, and ends it."""
    shutil.rmtree(project / "warehouse", ignore_errors=True)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "freshline", "run", "-p", str(project), "--json", "--yes"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        tables = project / "warehouse" / "tables"
        took_s = _wait(process, began, lambda: any(map(_is_loaded, _logs(tables))))
        cpu_s = _cpu_s(process.pid)
        loaded_s = None
        if until_loaded:
            loaded_s = _wait(process, began, lambda: all(map(_is_loaded, _logs(tables))))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    return Start(took_s, cpu_s, loaded_s)


def _wait(process: subprocess.Popen[bytes], began: float, reached: Callable[[], bool]) -> float:
    while not reached():
        if process.poll() is not None:
            raise SystemExit(f"freshline run ended with {process.returncode}")
        if time.monotonic() - began > PATIENCE_S:
            raise SystemExit(f"nothing after {PATIENCE_S:.0f} s")
        time.sleep(_LOOK_EVERY_S)
    return time.monotonic() - began


def _logs(tables: Path) -> list[Path]:
    return sorted(tables.glob("*/_delta_log"))


def _is_loaded(log: Path) -> bool:
    """Whether there is a commit beside the first, which makes the table. A join may have no rows."""
    return (log / f"{1:020d}.json").exists()


def _cpu_s(pid: int) -> float:
    """Of a process and of all below it."""
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    children = (Path(f"/proc/{pid}/task") / task / "children" for task in os.listdir(f"/proc/{pid}/task"))
    below = [int(child) for file in children for child in file.read_text("utf-8").split()]
    # Its own, and that of children that have ended.
    return sum(map(int, stat[11:15])) / _TICKS + sum(map(_cpu_s, below))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=42)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--loaded", action="store_true", help="go on until every table is loaded")
    given = parser.parse_args()
    starts: dict[int, list[Start]] = {FEW: [], given.tables: []}
    with tempfile.TemporaryDirectory() as temporary:
        for tables in starts:
            make_project(Path(temporary) / str(tables), tables)
        for _ in range(given.runs):
            for tables, seen in starts.items():
                seen.append(start(Path(temporary) / str(tables), given.loaded))
                loaded = (
                    ""
                    if seen[-1].loaded_s is None
                    else f", every table is loaded after {seen[-1].loaded_s:.1f} s"
                )
                print(
                    f"{tables} tables: first commit after {seen[-1].took_s:.1f} s, "
                    f"{seen[-1].cpu_s:.1f} CPU-seconds{loaded}",
                    flush=True,
                )
    few, many = ([start.took_s for start in seen] for seen in starts.values())
    ratio = statistics.median(many) / statistics.median(few)
    print(
        f"from start to first commit: {statistics.median(few):.1f} s with {FEW} tables, "
        f"{statistics.median(many):.1f} s with {given.tables}, {ratio:.2f} times"
    )
    cpu = [statistics.median(start.cpu_s for start in seen) for seen in starts.values()]
    print(f"processor time until then: {cpu[0]:.1f} s and {cpu[1]:.1f} s, {cpu[1] / cpu[0]:.2f} times")


if __name__ == "__main__":
    main()
