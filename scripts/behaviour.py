"""Records what a version of Freshline says and writes, and compares two such records.

A change of structure must not change behaviour. Record before and after, then compare:

    scripts/behaviour.py record out/before            # of the checkout that the script is in
    scripts/behaviour.py record out/after --only help --only plan
    scripts/behaviour.py compare out/before out/after

A record is a folder with a text file for each command: its exit code, standard output and standard error.
It covers the help of every command, `plan`, `simulate`, `shed`, `place` and `analyze` on all examples and on
generated input, every quick experiment, the journals of simulated runs, and a run on Spark that loads some
files and ends: its summary, its status, the tree of its storage and the keys of its journal.
Paths, run ids and what depends on the clock are normalised. The script imports nothing of Freshline.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
GENERATED = 24  # warehouses, task sets, query sets and operator graphs, each
LIMIT_S = 1_800
# Keys whose values say how quick the machine was.
TIMED = {"met", "missed_because", "broken_assumptions", "keep_mean"}


@dataclass(frozen=True)
class Call:
    """One command to record: the file that it goes to, and its arguments."""

    name: str
    arguments: tuple[str, ...]
    program: tuple[str, ...] = ("-m", "freshline")


# -- generated input ---------------------------------------------------------------------------------------


def warehouse(seed: int) -> dict[str, Any]:
    """A random warehouse as a user would write it; every fourth has queries, classes or nodes too."""
    rng = random.Random(f"behaviour:{seed}")
    policy = rng.choice(("edf", "edf-strict", "clustered-edf", "aus", "aus-slack", "prp", "rm", "fifo"))
    document: dict[str, Any] = {"name": f"w{seed}", "pools": {"updates": {"tracks": 2, "policy": policy}}}
    feeds: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for number in range(rng.randint(1, 6)):
        name, period_s = f"feed{number}", rng.choice((2, 3, 5, 8, 20, 60))
        feeds[name] = {"path": f"landing/{name}", "format": "csv", "timestamp": "ts", "rows": 1000}
        feeds[name] |= {"schema": "ts timestamp, k string, v double", "period": f"{period_s}s"}
        if rng.random() < 0.5:
            feeds[name]["jitter"] = f"{period_s * 100}ms"
        cost = {"startup": f"{period_s * rng.randint(20, 120)}ms", "rate": 0.02, "variability": 0.2}
        tables[name] = {"feed": name, "pool": "updates", "cost": cost}
        if rng.random() < 0.7:
            tables[name]["target_lag"] = f"{period_s * rng.randint(2, 8)}s"
    for number in range(rng.randint(0, 4)):
        source, period_s = rng.choice(list(tables)), rng.choice((10, 30, 120))
        sql = f"SELECT ts, k, sum(v) AS v FROM {source} GROUP BY ts, k"
        cost = {"startup": f"{period_s * 50}ms", "rate": 0.01}
        tables[f"derived{number}"] = {"sql": sql, "pool": "updates", "period": f"{period_s}s", "cost": cost}
    document |= {"feeds": feeds, "tables": tables}
    (_with_queries, _with_classes, _with_steps, _plain)[seed % 4](document, rng)
    return document


def _with_queries(document: dict[str, Any], rng: random.Random) -> None:
    document["pools"]["answers"] = {"tracks": 1, "policy": rng.choice(("lrm", "lrm-paper", "rm"))}
    document["tables"]["feed0"]["slices"] = {"by": "k"}
    document["queries"] = {
        f"q{number}": {
            "sql": "SELECT k, sum(v) AS v FROM feed0 GROUP BY k",
            "window": f"{window}s",
            "stride": f"{window}s",
            "weight": rng.randint(1, 9),
            "cost": {"startup": f"{rng.randint(50, 400)}ms", "rate": 0.3},
        }
        for number, window in enumerate(rng.choices((2, 3, 6), k=rng.randint(1, 4)))
    }


def _with_classes(document: dict[str, Any], rng: random.Random) -> None:
    document["pools"]["asked"] = {"tracks": 1, "policy": rng.choice(("rds-quota", "rds-edf", "admit-all"))}
    document["tables"]["feed0"]["slices"] = {"by": "k"}
    document["classes"] = {"operators": {"error": 0.2}, "guests": {"error": 0.5}}


def _with_steps(document: dict[str, Any], rng: random.Random) -> None:
    document |= {"pools": {}, "nodes": {"edge": {"master": "local[1]"}, "centre": {"master": "local[1]"}}}
    del document["pools"]
    document["links"] = [["edge", "centre"]]
    feed = {"path": "landing/s", "format": "csv", "timestamp": "ts", "schema": "ts timestamp, v double"}
    document["feeds"] = {"s": feed | {"period": "8s", "node": "edge", "burst": 100}}
    document["tables"] = {"s": {"feed": "s", "cost": {"startup": f"{rng.randint(100, 900)}ms"}}}
    for number in range(rng.randint(1, 3)):
        sql = "SELECT ts, v FROM s WHERE v > 1"
        cost = {"startup": f"{rng.randint(100, 900)}ms"}
        deadline = f"{rng.randint(4, 20)}s"
        document["tables"][f"out{number}"] = {"sql": sql, "deadline": deadline, "cost": cost}


def _plain(document: dict[str, Any], rng: random.Random) -> None:
    if rng.random() < 0.2:
        document["tables"]["feed0"]["target_lag"] = "soon"  # refused, with a sentence


def task_set(seed: int) -> dict[str, Any]:
    rng = random.Random(f"tasks:{seed}")
    tasks = []
    for number in range(rng.randint(1, 8)):
        period = rng.randint(2, 60)
        tasks.append({"name": f"t{number}", "cost": str(rng.randint(1, period)), "period": str(period)})
    return {"tracks": rng.randint(1, 4), "tasks": tasks}


def query_set(seed: int) -> dict[str, Any]:
    rng = random.Random(f"queries:{seed}")
    queries = []
    for number in range(rng.randint(1, 6)):
        cost, weight = str(rng.randint(1, 20) / 10), rng.randint(1, 9)
        queries.append({"name": f"q{number}", "period": rng.randint(1, 8), "cost": cost, "weight": weight})
        queries[-1] |= {"selectivity": "0.5", "tuples": 1000 * rng.randint(1, 50)}
    return {"queries": queries}


def operator_graph(seed: int) -> dict[str, Any]:
    rng = random.Random(f"operators:{seed}")
    operators = [{"name": "o0", "inputs": ["s"], "cost": "0.2"}]
    for number in range(1, rng.randint(2, 6)):
        inputs = [f"o{rng.randrange(number)}"]
        operators.append({"name": f"o{number}", "inputs": inputs, "cost": f"0.{rng.randint(1, 9)}"})
    output = {"stream": operators[-1]["name"], "deadline": rng.randint(1, 9), "node": "b"}
    nodes = [{"name": "a"}, {"name": "b", "speed": 2}]
    sources = [{"stream": "s", "node": "a", "rate": 1}]
    return {"nodes": nodes, "sources": sources, "operators": operators, "outputs": [output]}


def _written(folder: Path, name: str, content: dict[str, Any]) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(content, sort_keys=False) if name.endswith(".yml") else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return str(path)


# -- commands --------------------------------------------------------------------------------------------


def help_calls(environment: dict[str, str]) -> Iterator[Call]:
    """The help of every command and of every command of a group."""
    names = _commands_of(environment)
    yield Call("help/freshline", ("--help",))
    for name in names:
        yield Call(f"help/{name}", (name, "--help"))
        for sub in _commands_of(environment, name):
            yield Call(f"help/{name}-{sub}", (name, sub, "--help"))
    yield Call("help/schema-json", ("schema",))


def _commands_of(environment: dict[str, str], *group: str) -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-m", "freshline", *group, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\S+)", listed, re.MULTILINE)


def calls(work: Path, environment: dict[str, str]) -> Iterator[Call]:
    yield from help_calls(environment)
    # The shorter ones first, so that a difference shows early.
    for name in ("network", "dashboard", "classes", "alerts"):
        project = str(ROOT / "examples" / name)
        yield Call(f"plan/{name}", ("plan", "-p", project, "--json"))
        yield Call(f"plan/{name}-text", ("plan", "-p", project, "--all"))
        yield Call(f"simulate/{name}", ("simulate", "-p", project, "--for", "20m", "--json"))
        yield Call(f"simulate/{name}-text", ("simulate", "-p", project, "--for", "20m", "--seed", "3"))
        yield Call(f"status/{name}", ("status", "-p", project, "--json"))
    network = str(ROOT / "examples" / "network")
    troubles = ("--outage", "packets:1h-2h", "--gap", "flows:3h-4h", "--slow", "traffic:1.5", "--crash", "4h")
    for policy in ("edf", "aus", "aus-slack", "prp"):
        arguments = ("simulate", "-p", network, "--policy", policy, *troubles, "--json")
        yield Call(f"simulate/network-{policy}", arguments)
    for seed in range(GENERATED):
        project = _written(work, f"w{seed}/freshline.yml", warehouse(seed))
        yield Call(f"plan/w{seed}", ("plan", "-p", project, "--json"))
        yield Call(f"simulate/w{seed}", ("simulate", "-p", project, "--for", "10m", "--json"))
        tasks = _written(work, f"t{seed}.json", task_set(seed))
        yield Call(f"analyze/t{seed}", ("analyze", tasks, "--json"))
        queries = _written(work, f"q{seed}.json", query_set(seed))
        yield Call(f"shed/q{seed}", ("shed", queries, "--json"))
        operators = _written(work, f"o{seed}.json", operator_graph(seed))
        yield Call(f"place/o{seed}", ("place", operators, "--json"))
    yield Call("shed/table2", ("shed", str(ROOT / "examples/shed/table2.json"), "--json"))
    yield Call("shed/table2-text", ("shed", str(ROOT / "examples/shed/table2.json")))
    yield Call("place/collision", ("place", str(ROOT / "examples/place/collision.json"), "--json"))
    yield Call("place/collision-text", ("place", str(ROOT / "examples/place/collision.json")))
    yield Call("place/alerts", ("place", "-p", str(ROOT / "examples/alerts"), "--json"))
    yield Call("journals/digests", ("--warehouses", "25"), ("scripts/journal_digests.py",))
    for name, arguments in {
        "staleness-bounds": ("--quick", "--out"),
        "outage-recovery": ("--seeds", "1", "--into"),
        "continuous-queries": ("--quick", "--into"),
        "placement": ("--quick", "--into"),
        "service-classes": ("--quick", "--into"),
    }.items():
        yield Call(f"experiment/{name}", ("experiment", name, *arguments, str(work / name), "--json"))


# -- a run on Spark --------------------------------------------------------------------------------------


def live_record(work: Path, into: Path, environment: dict[str, str]) -> None:
    """Loads generated files until none is left; records summary, status, storage and the journal's shape."""
    project = work / "live"
    document = {
        "name": "live",
        "storage": "warehouse",
        "pools": {"updates": {"tracks": 2}, "answers": {"tracks": 1, "policy": "lrm"}},
        "feeds": {
            "a": {"path": "landing/a", "format": "csv", "schema": "ts timestamp, k string, v double"}
            | {"timestamp": "ts", "period": "2s", "rows": 50}
        },
        "tables": {
            "a": {"feed": "a", "slices": {"by": "k"}, "pool": "updates", "cost": {"startup": "500ms"}},
            "b": {"sql": "SELECT ts, k, sum(v) AS v FROM a GROUP BY ts, k", "period": "4s"}
            | {"pool": "updates", "cost": {"startup": "500ms"}},
        },
        "queries": {
            "q": {"sql": "SELECT k, sum(v) AS v FROM a GROUP BY k", "window": "4s", "stride": "4s"}
            | {"cost": {"startup": "100ms"}}
        },
    }
    _written(project, "freshline.yml", document)
    landing = project / "landing" / "a"
    landing.mkdir(parents=True)
    for file in range(6):
        rows = "".join(f"2024-01-01 00:00:{file * 2:02}.{row:06},k{row % 5},{row}\n" for row in range(50))
        (landing / f"{file}.csv").write_text("ts,k,v\n" + rows, encoding="utf-8")
    (landing / "bad.csv").write_text("ts,k,v\nnot a time,k,1\n", encoding="utf-8")
    for name in ("run --drain", "status", "results q", "quarantine list"):
        arguments = (*name.split(), "-p", str(project), "--json")
        code, out, err = _run(Call(name, arguments), environment)
        shown = f"exit {code}\n{_shape(out)}\n--- standard error\n{_lines_without_numbers(err)}"
        _keep(into, f"live/{name.replace(' ', '-')}", shown)
    storage = project / "warehouse"
    tree = sorted(_normal_path(path.relative_to(storage)) for path in storage.rglob("*") if path.is_file())
    modes = sorted(
        {f"{_normal_path(path.relative_to(storage))} {path.stat().st_mode:o}" for path in storage.rglob("*")}
    )
    _keep(into, "live/tree", "\n".join(dict.fromkeys(tree)) + "\n")
    _keep(into, "live/modes", "\n".join(modes) + "\n")
    kinds = set()
    for log in storage.rglob("logs/*.jsonl"):
        header, *calls = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        kinds.add(_shape(json.dumps(header)))
        for call in calls:  # what comes together at an instant depends on the machine
            kinds |= {
                _shape(json.dumps(each)) for key in ("events", "instructions") for each in call.get(key, ())
            }
    _keep(into, "live/journal", "\n".join(sorted(kinds)) + "\n")


def _shape(text: str) -> str:
    """JSON with its keys, its words and its nulls; numbers are left out, as most of them are times."""
    try:
        return json.dumps(_bare(json.loads(text)), indent=1, sort_keys=False)
    except ValueError:
        return _lines_without_numbers(text)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "TIMED" if key in TIMED else _bare(each) for key, each in value.items()}
    if isinstance(value, list):
        bare = [_bare(each) for each in value]
        return [each for number, each in enumerate(bare) if each not in bare[:number]]
    if isinstance(value, str):
        return _lines_without_numbers(value)
    return value if value is None or isinstance(value, bool) else 0


def _lines_without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "0", _normal(text))


def _normal_path(path: Path) -> str:
    text = re.sub(r"[0-9a-f]{6,}", "HEX", str(path))
    return re.sub(r"\d+", "0", text)


# -- recording and comparing -----------------------------------------------------------------------------


def _normal(text: str) -> str:
    text = text.replace(str(ROOT), "ROOT")
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/[\w./-]*?behaviour-\w+", "WORK", text)
    text = re.sub(r"\d{8}T\d{6}-[0-9a-f]{6}", "RUN", text)
    # What a solver or a search took, in seconds.
    return re.sub(r'("(?:seconds|solver_seconds|took|took_s|elapsed|runtime)": )[\d.e-]+', r"\1TIME", text)


def _run(call: Call, environment: dict[str, str]) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *call.program, *call.arguments],
        env=environment,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout, done.stderr


def _keep(into: Path, name: str, text: str) -> None:
    path = into / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def record(into: Path, only: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "120", "NO_COLOR": "1"}
    wanted: Callable[[str], bool] = lambda name: not only or name.split("/")[0] in only  # noqa: E731
    with tempfile.TemporaryDirectory(prefix="behaviour-") as folder:
        work = Path(folder)

        def one(call: Call) -> None:
            code, out, err = _run(call, environment)
            _keep(into, call.name, f"exit {code}\n{_normal(out)}\n--- standard error\n{_normal(err)}")
            print(f"{call.name}: exit {code}", flush=True)

        if into.exists() and not only:
            shutil.rmtree(into)
        chosen = [call for call in calls(work, environment) if wanted(call.name)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, chosen))
        if wanted("live/"):
            live_record(work, into, environment)
            print("live: recorded", flush=True)


def compare(before: Path, after: Path) -> int:
    """Prints what differs; the number of files that do."""
    old, new = ({str(p.relative_to(f)): p for p in f.rglob("*.txt")} for f in (before, after))
    different = 0
    for name in sorted(old.keys() & new.keys()):
        one, other = (path.read_text(encoding="utf-8").splitlines() for path in (old[name], new[name]))
        if one != other:
            different += 1
            print(
                *list(difflib.unified_diff(one, other, f"before/{name}", f"after/{name}", "", "", 1, ""))[
                    :60
                ],
                sep="\n",
            )
    for name in sorted(old.keys() ^ new.keys()):
        print(f"only {'before' if name in old else 'after'}: {name}")
    print(f"{len(old.keys() & new.keys())} compared, {different} differ")
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("into", type=Path)
    recording.add_argument(
        "--only", action="append", default=[], help="help, plan, simulate, live, …; repeatable"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(arguments.into, arguments.only)
        return 0
    return 1 if compare(arguments.before, arguments.after) else 0


if __name__ == "__main__":
    sys.exit(main())
