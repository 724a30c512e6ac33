"""Statements that grow, by the hundred, sent to a running warehouse: deadlines hold, and so do its tables.

.venv/bin/python benchmarks/growing_statements.py --statements 500 --deadline 20s
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, SimpleQueue

from freshline.base.duration import SECOND, parse_duration
from freshline.service.address import ServiceAddress
from freshline.service.client import ask
from freshline.storage.control.layout import StorageLayout
from freshline_lab.campaigns.sql.growing_statements import GrowingStatements

CLIENTS = 2
# What an answer may be late: a share of its deadline, and a constant.
LATE_SHARE, LATE_S = 0.1, 1.5
PROJECT = """\
name: growing
pools: {updates: {tracks: 1}, asked: {tracks: 1, policy: admit-all}}
feeds:
  a: &feed {path: a, format: csv, schema: "ts timestamp, k string, v long", timestamp: ts, period: 5s}
  b: {<<: *feed, path: b}
  c: {<<: *feed, path: c}
tables:
  a: &table {feed: a, pool: updates, cost: {startup: 1s}, slices: {by: k}}
  b: {<<: *table, feed: b}
  c: {<<: *table, feed: c}
classes:
  operators: {error: 0.3}
"""
HOLE = "WITH c0 AS (SELECT k, v FROM a)" + "".join(
    f", c{n} AS (SELECT x.k, x.v FROM c{n - 1} x JOIN c{n - 1} y ON x.k = y.k)" for n in range(1, 25)
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deadline", default="20s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder), arguments.statements, arguments.seed, arguments.deadline)


def _run(folder: Path, count: int, seed: int, deadline: str) -> None:
    (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    _land(folder, 0)
    command = [sys.executable, "-m", "freshline", "run", "-p", str(folder), "--json"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    control = StorageLayout(folder / "warehouse").control()
    is_over = threading.Event()
    threading.Thread(target=_keep_landing, args=(folder, is_over), daemon=True).start()
    while (address := ServiceAddress.read(control.service)) is None:
        assert run.poll() is None, "the run has ended"
        time.sleep(0.2)
    time.sleep(15)  # until the first files are loaded
    statements: SimpleQueue[str] = SimpleQueue()
    statements.put(f"{HOLE} SELECT count(*) AS n FROM c24")
    for number in range(count):
        statements.put(GrowingStatements(seed + number).request().sql)
    answers: list[tuple[int, float, str, str]] = []
    clients = [
        threading.Thread(target=_ask_all, args=(address, statements, deadline, answers))
        for _ in range(CLIENTS)
    ]
    started = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    is_over.set()
    _report(answers, deadline, time.monotonic() - started)
    tables = ask(control.service, "GET", "/v1/status")["tables"]
    at = time.monotonic()
    run.terminate()
    run.wait()
    print(f"SIGTERM: the run ended after {time.monotonic() - at:.1f} s, with exit code {run.returncode}")
    for table in tables:
        print(
            {key: table[key] for key in table if key in ("name", "staleness_max", "staleness_bound", "jobs")}
        )


def _report(answers: list[tuple[int, float, str, str]], deadline: str, took_s: float) -> None:
    print(f"{len(answers)} statements in {took_s:.0f} s")
    for status, number in sorted(Counter(status for status, *_ in answers).items()):
        seconds = sorted(second for each, second, *_ in answers if each == status)
        middle, most = seconds[len(seconds) // 2], seconds[-1]
        print(f"  {status}: {number:,}, {middle:.2f} s in the middle, {most:.2f} s at most")
    deadline_s = parse_duration(deadline) / SECOND
    limit_s = deadline_s * (1 + LATE_SHARE) + LATE_S
    late = [answer for answer in answers if answer[1] > limit_s]
    print(f"  {len(late)} after their deadline of {deadline_s:g} s + 10 % + {LATE_S:g} s")
    for text, number in Counter(
        text for status, _, text, _ in answers if status not in (200, 422)
    ).most_common(5):
        print(f"  {number}: {text[:150]}")
    for status, took, _, sql in sorted(answers, key=lambda answer: -answer[1])[:3]:
        print(f"  slowest: {status} after {took:.2f} s: {sql[:300]}")


def _ask_all(
    address: ServiceAddress,
    statements: SimpleQueue[str],
    deadline: str,
    answers: list[tuple[int, float, str, str]],
) -> None:
    while True:
        try:
            sql = statements.get_nowait()
        except Empty:
            return
        body = json.dumps({"sql": sql, "class": "operators", "deadline": deadline}).encode()
        at = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=150)
        connection.request("POST", "/v1/query", body, {"Authorization": f"Bearer {address.token}"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        error = json.loads(text).get("error") if response.status != 200 else None
        said = str(error["message"]) if isinstance(error, dict) else ""
        answers.append((response.status, time.monotonic() - at, said, sql))


def _keep_landing(folder: Path, is_over: threading.Event) -> None:
    number = 1
    while not is_over.wait(5.0):
        _land(folder, number)
        number += 1


def _land(folder: Path, number: int) -> None:
    """A file of 1,000 rows for each table."""
    now = time.time()
    rows = [
        f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now - 5 + at / 250))}Z,key{at % 97},{at % 101}"
        for at in range(1_000)
    ]
    for name in "abc":
        (folder / name).mkdir(exist_ok=True)
        draft = folder / name / f".{number}.csv"
        draft.write_text("\n".join(["ts,k,v", *rows, ""]), encoding="utf-8")
        draft.rename(draft.with_name(f"{number}.csv"))


if __name__ == "__main__":
    main()
