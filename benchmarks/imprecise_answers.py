"""How often 95 % intervals of imprecise answers hold the truth, and what a share of the slices costs.

Coverage: tables of values as they come (uniform, exponential, lognormal, Pareto), by one group or by many,
from a sixteenth of their slices. Partial results are made here, and merged as a request's are; beside it a
smaller check of the same on Spark itself, of requests and of a continuous query. Values that an answer calls
`few` do not count. Cost: the clock of requests over a table of compacted files, by the share of its slices;
the fixed part is what one slice costs. All shares take turns in one run, and only their ratio is judged.

    .venv/bin/python benchmarks/imprecise_answers.py [--sets 400] [--rows 4000000] [--only coverage]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from freshline.definitions.slices import NO_SLICE, SLICES
from freshline.spark.merging import Merged, merged_columns
from freshline.spark.outliers import outliers_marked
from freshline.spark.partials import SLICE, Output, Partials
from freshline.spark.request_run import FEW_ROWS

Draw = Callable[[np.random.Generator, int], Any]
DRAWS: dict[str, Draw] = {
    "uniform": lambda rng, rows: rng.uniform(0, 100, rows),
    "exponential": lambda rng, rows: rng.exponential(10, rows),
    "lognormal(1)": lambda rng, rows: rng.lognormal(0, 1, rows),
    "lognormal(2)": lambda rng, rows: rng.lognormal(0, 2, rows),
    "pareto(1.5)": lambda rng, rows: rng.pareto(1.5, rows) + 1,
}
HEAVY = ("lognormal(2)", "pareto(1.5)")
ROWS, GROUPS, ROWS_A_GROUP = 100_000, 200, 3_000
BATCH = 5_000  # rows of one update, of which 3 % are outliers
SHARE = SLICES // 16
ASKED, ASKED_HEAVY, ASKED_COST = 0.93, 0.91, 0.2
KINDS = {"n": "count", "s": "sum", "m": "avg", "v": "var_samp", "d": "stddev_samp"}
OUTPUTS = (
    Output("g", "key", 0),
    *(Output(name, kind, number) for number, (name, kind) in enumerate(KINDS.items())),
)
PARTIALS = Partials("", OUTPUTS, ("_k0",), ())
ANSWER = StructType([StructField(name, LongType() if name in "gn" else DoubleType()) for name in "gnsmvd"])
# What the asked share is asked of: variances are reported beside it.
JUDGED = ("count", "sum", "avg")


def partial_rows(slice_of: Any, group: Any, value: Any) -> pa.Table:
    """What a part of these rows gives."""
    cells, place = np.unique((group + 1) * (SLICES + 1) + slice_of + 1, return_inverse=True)
    count, total = np.bincount(place), np.bincount(place, weights=value)
    mean = total / count
    apart = np.bincount(place, weights=(value - mean[place]) ** 2)
    squares = np.bincount(place, weights=value**2)
    slices = (cells % (SLICES + 1) - 1).astype(np.int16)
    columns = {"_k0": cells // (SLICES + 1) - 1, SLICE: slices}
    for number, kind in enumerate(KINDS.values()):
        columns[f"_c{number}"] = count
        is_scatter = kind in ("var_samp", "stddev_samp")
        columns[f"_t{number}"] = mean if is_scatter else total
        columns[f"_q{number}"] = apart if is_scatter else squares
    return pa.table(columns)


def dealt(rng: np.random.Generator, value: Any, has_outliers: bool) -> Any:
    """The slices of rows that come in updates."""
    slices = rng.integers(0, SLICES, len(value)).astype(np.int16)
    if not has_outliers:
        return slices
    found = []
    for begin in range(0, len(value), BATCH):
        rows = pa.table({"v": value[begin : begin + BATCH], "_slice": slices[begin : begin + BATCH]})
        found.append(outliers_marked(rows, "v")["_slice"].to_numpy())
    return np.concatenate(found)


def truths(group: Any, value: Any) -> dict[str, Any]:
    count, total = np.bincount(group), np.bincount(group, weights=value)
    mean = total / count
    variance = np.bincount(group, weights=(value - mean[group]) ** 2) / (count - 1)
    return {"n": count, "s": total, "m": mean, "v": variance, "d": np.sqrt(variance)}


class Tally:
    """Of each aggregate, how many intervals there were and how many held the truth."""

    def __init__(self) -> None:
        self._held: dict[str, list[bool]] = defaultdict(list)
        self._width: dict[str, list[float]] = defaultdict(list)
        self.few = 0

    def add(self, kind: str, low: float | None, high: float | None, true: float, is_few: bool) -> None:
        if is_few:
            self.few += 1
        elif low is not None and high is not None:
            slack = 1e-9 * abs(true)  # the truth is added up in another order
            self._held[kind].append(low - slack <= true <= high + slack)
            self._width[kind].append((high - low) / 2 / abs(true) if true else high - low)

    def summary(self) -> dict[str, Any]:
        return {
            kind: {
                "values": len(held),
                "covered": round(float(np.mean(held)), 4),
                "half_width": round(median(self._width[kind]), 4),
            }
            for kind, held in self._held.items()
        }


def note(tally: Tally, merged: Merged, truth: dict[str, Any]) -> None:
    keys = merged.columns[0].values
    for column in merged.columns[1:]:
        assert column.bounds is not None
        assert column.seen is not None
        for row, (low, high) in enumerate(column.bounds):
            true = float(truth[column.name][keys[row]])
            tally.add(KINDS[column.name], low, high, true, column.seen[row] < FEW_ROWS)


def coverage(sets: int, seed: int) -> Iterator[dict[str, Any]]:
    """One line a kind of values; by groups there are that many times more values, so fewer tables do."""
    cases = [(name, 1, ROWS, False) for name in DRAWS]
    cases += [(name, 1, ROWS, True) for name in HEAVY]
    cases += [(name, GROUPS, GROUPS * ROWS_A_GROUP, False) for name in DRAWS if name not in HEAVY]
    cases += [(name, GROUPS, GROUPS * ROWS_A_GROUP, True) for name in HEAVY]
    for name, groups, rows, has_outliers in cases:
        tally = Tally()
        for number in range(sets if groups == 1 else max(2, sets // 25)):
            rng = np.random.default_rng((seed, number, rows))
            value, group = DRAWS[name](rng, rows), np.arange(rows) % groups
            slice_of = dealt(rng, value, has_outliers)
            read = (slice_of == NO_SLICE) | ((slice_of - rng.integers(SLICES)) % SLICES < SHARE)
            parts = partial_rows(slice_of[read], group[read], value[read])
            merged = merged_columns(PARTIALS, ANSWER, [parts], SHARE, lends=False)
            note(tally, merged, truths(group, value))
        asked = ASKED_HEAVY if name in HEAVY else ASKED
        found = tally.summary()
        met = all(found[kind]["covered"] >= asked for kind in JUDGED)
        is_asked = name not in HEAVY or has_outliers
        yield {
            "values": name,
            "groups": groups,
            "outliers": has_outliers,
            **found,
            "few": tally.few,
            "met": met if is_asked else None,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["coverage", "spark", "cost"])
    given = parser.parse_args()
    verdicts = []
    if given.only in (None, "coverage"):
        for each in coverage(given.sets, given.seed):
            print(json.dumps(each), flush=True)
            verdicts.append(each["met"] is not False)
    print("met" if all(verdicts) else "NOT met")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
