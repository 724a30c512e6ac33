"""What reading some of a table's slices costs, and how often 95 % intervals hold the truth.

Cost: CPU of Spark and of this process for a query over a table of compacted files, by the share of its
slices; the fixed part is what one slice of the same window costs, for which the same files are opened.
Windows and slices are others each time, as they are in a run. Beside it, what is not judged: the CPU of
Spark's tasks alone, without its planning and what Java does for itself, and the time on the clock.
Coverage: of random rows, groups and shares, every count, sum and average of every group is compared with the
truth; partial results are made here, and merged as an iteration merges Spark's.

    .venv/bin/python benchmarks/slices.py [--rows 8000000] [--sets 2000]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from freshline.base.duration import SECOND
from freshline.spark.answering.merging import merge
from freshline.spark.answering.partials import SLICE, OutputColumn, Partials
from freshline.spark.answering.window_reading import PreparedQuery, session_for_queries
from freshline.spark.session.session import open_session
from freshline.sql.slices import SLICES
from freshline_lab.campaigns.sql.sliced_tables import START_US, SlicedTables

WINDOW_US = 600 * SECOND
BY_KEY = {"a": "{by: k}", "b": "{by: k}", "c": "{}"}
TYPES = {"a": ("bigint", "double"), "b": ("bigint", "double"), "c": ("int", "double")}
COSTS = {
    "sum": "SELECT sum(v) AS s, count(*) AS n FROM a WHERE v > 1",
    "groups": "SELECT k % 50 AS g, avg(v) AS m, max(v) AS x FROM a GROUP BY k % 50",
    "join": "SELECT a.k % 20 AS g, count(*) AS n, sum(a.v * b.w) AS s FROM a JOIN b ON a.k = b.k "
    "GROUP BY a.k % 20",
}
SHARES = (64, 128, 256)
UPDATES = 16
WARM_UP = 6
ASKED_COST, ASKED_COVERAGE = 0.65, 0.93
# A query with a count, a sum and an average by group, as a part answers it.
OUTPUTS = (
    OutputColumn("g", "key", 0),
    OutputColumn("n", "count", 0),
    OutputColumn("s", "sum", 1),
    OutputColumn("m", "avg", 2),
)
PARTIALS = Partials("", OUTPUTS, ("_k0",), ())
ANSWER = StructType([StructField(name, LongType() if name in "gn" else DoubleType()) for name in "gnsm"])


class Meter:
    """Seconds by kind. CPU is of Spark's process and of this one: other processes do not count."""

    def __init__(self, session: SparkSession) -> None:
        context: Any = session.sparkContext
        self._stat = Path(f"/proc/{context._gateway.proc.pid}/stat")
        self._spark = context._jsc.sc()
        self._stages, self._tasks_s = 0, 0.0

    def read(self) -> dict[str, float]:
        fields = self._stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / 100 + time.process_time()
        return {"cpu": cpu_s, "clock": time.perf_counter()}

    def tasks_s(self) -> float:
        """Of all stages so far, once Spark has told of them."""
        self._spark.listenerBus().waitUntilEmpty()
        while True:
            try:
                stage = self._spark.statusStore().lastStageAttempt(self._stages)
            except Py4JJavaError:
                return self._tasks_s  # there is none yet
            self._tasks_s += stage.executorCpuTime() / 1e9
            self._stages += 1


def costs(session: SparkSession, rows: int, rounds: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        tables = SlicedTables(session, Path(folder), BY_KEY, TYPES, COSTS, WINDOW_US)
        for number in range(UPDATES):
            for name, column, share in (("a", "v", 1), ("b", "w", 4)):
                made = session.range(number * rows // UPDATES, (number + 1) * rows // UPDATES, share)
                at = f"timestamp_micros({START_US} + CAST(id * {WINDOW_US / rows:.6f} AS bigint) + 1)"
                tables.write(
                    name,
                    made.selectExpr(f"{at} AS ts", "id AS k", f"CAST(hash(id) % 1000 AS double) AS {column}"),
                )
        for table in tables.stored.values():
            while table.compact(64 << 20, 64 << 20):
                pass
        meter = Meter(session)
        for name in COSTS:
            yield cost(session, meter, tables, name, rounds)


def cost(session: SparkSession, meter: Meter, tables: SlicedTables, name: str, rounds: int) -> dict[str, Any]:
    """Medians of rounds in which all shares take turns."""
    prepared = tables.prepared(name)
    taken: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(WARM_UP + rounds):
        for slices in (1, *SHARES):
            end_us = START_US + WINDOW_US - random.randrange(1_000)
            tasks_before_s, before = meter.tasks_s(), meter.read()
            iterate(session, prepared, slices, end_us)
            spent = {kind: after - before[kind] for kind, after in meter.read().items()}
            spent["tasks"] = meter.tasks_s() - tasks_before_s
            if number >= WARM_UP:
                for kind, seconds in spent.items():
                    taken[kind][slices].append(seconds)
    medians = {
        kind: {slices: median(each) for slices, each in shares.items()} for kind, shares in taken.items()
    }
    return {
        "query": name,
        "files": len(prepared.tables[0].files),
        **{kind: _above_fixed(seconds) for kind, seconds in medians.items()},
    }


def _above_fixed(seconds: Mapping[int, float]) -> dict[str, Any]:
    fixed_s, whole_s = seconds[1], seconds[SLICES]
    return {
        "fixed_s": round(fixed_s, 3),
        "half_s": round(seconds[SLICES // 2], 3),
        "whole_s": round(whole_s, 3),
        "above_fixed": {
            slices: round((seconds[slices] - fixed_s) / (whole_s - fixed_s), 3) for slices in SHARES
        },
    }


def iterate(session: SparkSession, prepared: PreparedQuery, slices: int, to_us: int) -> None:
    iteration = prepared.begin(session, to_us)
    iteration.read(slices)
    iteration.outcome()


def coverage(sets: int, seed: int) -> dict[str, Any]:
    held: dict[str, list[bool]] = defaultdict(list)
    widths: dict[str, list[float]] = defaultdict(list)
    unknown = 0
    for number in range(sets):
        unknown += compare(np.random.default_rng((seed, number)), held, widths)
    kinds = [kind for kind in held if "," not in kind]
    return {
        "by_aggregate": {
            kind: {
                "values": len(held[kind]),
                "covered": round(float(np.mean(held[kind])), 4),
                "half_width": round(median(widths[kind]), 3),
            }
            for kind in kinds
        },
        "by_kind": {kind: round(float(np.mean(held[kind])), 3) for kind in sorted(held) if kind not in kinds},
        "without_interval": unknown,
    }


def compare(rng: np.random.Generator, held: dict[str, list[bool]], widths: dict[str, list[float]]) -> int:
    """Notes of every estimate of one table whether the truth is in it; how many have no interval."""
    kind, dealing, slice_of, group, value = random_rows(rng)
    slices = int(rng.choice([2, 4, 8, 16, 32, 64, 128, 192, 240]))
    read = (slice_of - rng.integers(SLICES)) % SLICES < slices
    if not read.any():
        return 0
    parts = partial_rows(slice_of[read], group[read], value[read])
    answer = merge(PARTIALS, ANSWER, [parts], slices)
    count = np.bincount(group)
    total = np.bincount(group, weights=value)
    truth = {"n": count, "s": total, "m": total / np.maximum(1, count)}
    unknown = 0
    for estimate in answer.estimates:
        if estimate.low is None or estimate.high is None:
            unknown += 1
            continue
        true = float(truth[estimate.column][answer.rows[estimate.row]["g"]])
        aggregate = {"n": "count", "s": "sum", "m": "avg"}[estimate.column]
        rounding = 1e-9 * abs(true)  # the truth is added up in another order
        for name in (aggregate, f"{aggregate}, {kind}", f"{aggregate}, {dealing}", f"{aggregate}, {slices}"):
            held[name].append(estimate.low - rounding <= true <= estimate.high + rounding)
            half = (estimate.high - estimate.low) / 2
            widths[name].append(half / abs(true) if true else half)
    return unknown


def random_rows(rng: np.random.Generator) -> tuple[str, str, Any, Any, Any]:
    """Rows dealt by chance or by keys; groups alike or skewed; values tame, heavy-tailed or mostly 0."""
    rows, groups = int(10 ** rng.uniform(1.5, 5)), int(10 ** rng.uniform(0, 2))
    skewed, keys = rng.random() < 0.5, int(10 ** rng.uniform(1, 4))

    def drawn(size: int) -> Any:
        return np.minimum(rng.zipf(1.3, rows) - 1, size - 1) if skewed else rng.integers(0, size, rows)

    group, kind = drawn(groups), str(rng.choice(["normal", "lognormal", "small", "rare", "signed"]))
    value = {
        "normal": rng.normal(100, 30, rows),
        "lognormal": rng.lognormal(3, 1.5, rows),
        "small": rng.integers(0, 5, rows).astype(float),
        "rare": (rng.random(rows) < 0.02).astype(float),
        "signed": rng.normal(0, 1, rows) * rng.lognormal(0, 1, rows),
    }[kind]
    if rng.random() < 0.6:
        return kind, "by chance", rng.integers(0, SLICES, rows), group, value
    key = drawn(keys)
    value = value * rng.lognormal(0, 0.5, keys)[key]
    return kind, "by key", rng.integers(0, SLICES, keys)[key], group, value


def partial_rows(slice_of: Any, group: Any, value: Any) -> pa.Table:
    """What a part of these rows gives."""
    cells, place = np.unique(group * SLICES + slice_of, return_inverse=True)
    count = np.bincount(place)
    total, squares = np.bincount(place, weights=value), np.bincount(place, weights=value**2)
    columns = {"_k0": cells // SLICES, SLICE: (cells % SLICES).astype(np.int16), "_c0": count}
    for number in (1, 2):
        columns |= {f"_c{number}": count, f"_t{number}": total, f"_q{number}": squares}
    return pa.table(columns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sets", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["cost", "coverage"])
    given = parser.parse_args()
    verdicts = []
    if given.only != "cost":
        found = coverage(given.sets, given.seed)
        print(json.dumps(found), flush=True)
        verdicts += [each["covered"] >= ASKED_COVERAGE for each in found["by_aggregate"].values()]
    if given.only != "coverage":
        session = open_session("slices", None, None)
        try:
            for each in costs(session_for_queries(session), given.rows, given.rounds):
                print(json.dumps(each), flush=True)
                verdicts.append(each["cpu"]["above_fixed"][SLICES // 2] <= ASKED_COST)
        finally:
            session.stop()
    print("met" if all(verdicts) else "NOT met")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
