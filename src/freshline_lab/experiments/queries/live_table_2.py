"""Paper 000, Table 2 for a live run: its queries as SQL over three tables, and their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final

from freshline.base.duration import MILLISECOND, SECOND
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.iterations import PastPart
from freshline_lab.experiments.queries.table_2 import table_2

TABLES: Final = ("s1", "s2", "s3")
# Answers are small, whatever is read: the paper's costs do not include handing them over.
_KEYS: Final = 1 << 28
_VALUES: Final = 1_000
# Spark is faster than the paper's 4 to 30 µs per tuple: hashes slow it down. Nearly all rows pass.
_HASHED: Final = "sha2(sha2(sha2(CAST(s1.k AS STRING), 256), 256), 256) NOT LIKE 'ab%'"
_JOIN: Final = "FROM s1 JOIN s2 ON s1.k = s2.k"
SQL: Final = (
    f"SELECT * FROM s1 WHERE v = 1 OR NOT {_HASHED}",
    f"SELECT * FROM s1 WHERE v = 2 OR NOT {_HASHED}",
    f"SELECT k FROM s1 WHERE v = 3 OR NOT {_HASHED}",
    f"SELECT k FROM s1 WHERE v = 4 OR NOT {_HASHED}",
    f"SELECT s1.k AS k, s1.v AS v, s2.v AS w {_JOIN} WHERE {_HASHED}",
    f"SELECT s1.k AS k, s2.v AS v, s1.v AS w {_JOIN} WHERE {_HASHED}",
    f"SELECT s1.k AS k, s2.v AS v, s3.v AS w {_JOIN} JOIN s3 ON s1.k = s3.k WHERE {_HASHED}",
    f"SELECT s1.k AS k {_JOIN} WHERE {_HASHED}",
    f"SELECT s1.v AS v, s2.v AS w {_JOIN} WHERE {_HASHED}",
    f"SELECT count(*) AS n, sum(v) AS total FROM s1 WHERE {_HASHED}",
)
TIMES_LONGER: Final = 2  # than the paper's strides
FIXED_MOST: Final = 0.4  # of the track, by fixed parts alone
LOADING_MOST: Final = 0.3  # of a track
DEMAND: Final = 1.5
FILE_EVERY_S: Final = 12
_STRIDE_GRAIN_US: Final = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class QueryCost:
    """The cost of a query's answer: per part, per row of all its tables, and the rest."""

    part_us: float
    us_per_row: float
    rest_us: float

    @property
    def fixed_us(self) -> float:
        return self.part_us + self.rest_us

    def cost_us(self, rows: float, part_us: float) -> float:
        """The cost over that many rows, in parts of at most that length."""
        reading_us = self.us_per_row * rows
        parts = max(1, ceil(reading_us / (max(part_us, 3 * self.part_us) - self.part_us)))
        return self.rest_us + parts * self.part_us + reading_us


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query as in the project file."""

    name: str
    sql: str
    stride_us: int
    window_us: int
    weight: int
    selectivity: float

    @property
    def tables(self) -> int:
        return self.sql.count(" JOIN ") + 1


@dataclass(frozen=True, slots=True)
class QuerySizes:
    """The lengths of strides and windows, the rates, and the resulting demand."""

    queries: tuple[LiveQuery, ...]
    rows_a_second: int  # of each table
    strides_in_window: int
    longer: float  # the factor on all strides
    demand: float  # tracks
    loading: float

    @property
    def cycle_us(self) -> int:
        return max(query.stride_us for query in self.queries)

    @property
    def history_us(self) -> int:
        return max(query.window_us for query in self.queries)


def queries(count: int, longer: float, strides: int) -> tuple[LiveQuery, ...]:
    """The first `count` queries of Table 2, with windows of that many strides."""
    found = []
    for load, sql in list(zip(table_2(1), SQL, strict=True))[:count]:
        # Slightly below would mean a higher load by fixed costs.
        stride_us = ceil(load.period_us * TIMES_LONGER * longer / _STRIDE_GRAIN_US) * _STRIDE_GRAIN_US
        about = int(load.weight), float(load.selectivity)
        found.append(LiveQuery(load.name, sql, stride_us, strides * stride_us, *about))
    return tuple(found)


def last_answers(parts: Sequence[PastPart], count: int) -> list[PastPart]:
    """The parts of the last `count` answers."""
    last = sorted({part.iteration for part in parts})[-count:]
    return [part for part in parts if part.iteration in last]


def query_cost(parts: Sequence[PastPart]) -> QueryCost:
    """By medians: the usual cost of answers, not the worst."""
    by_slices: dict[int, list[PastPart]] = {}
    for part in parts:
        by_slices.setdefault(part.slices, []).append(part)
    rest_us = median(part.duration_us for part in by_slices.pop(0))
    few, many = by_slices[min(by_slices)], by_slices[max(by_slices)]
    few_us, many_us = (median(part.duration_us for part in each) for each in (few, many))
    few_rows, many_rows = (median(part.rows for part in each) for each in (few, many))
    per_row = max(0.001, (many_us - few_us) / max(1, many_rows - few_rows))
    return QueryCost(max(1_000.0, few_us - per_row * few_rows), per_row, rest_us)


def sizes(costs: Mapping[str, QueryCost], updates: Sequence[PastRun], demand: float = DEMAND) -> QuerySizes:
    """Strides, windows and rates at which the queries have that demand, and loading takes little."""
    paper = queries(len(costs), 1, 1)
    fixed = sum(costs[query.name].fixed_us / query.stride_us for query in paper)
    longer = max(1.0, fixed / FIXED_MOST)
    asked = queries(len(costs), longer, 1)
    in_a_stride = _rows_in_a_stride(asked, costs, demand)
    loaded = median(run.rows for run in updates)
    loading = len(TABLES) * median(run.duration_us for run in updates) / (FILE_EVERY_S * SECOND)
    # Smaller files are only known to cost no more.
    rows_most = max(1.0, loaded / FILE_EVERY_S * LOADING_MOST / loading)
    strides = max(1, ceil(in_a_stride / rows_most))
    rows = max(1, round(in_a_stride / strides))
    return QuerySizes(
        queries(len(costs), longer, strides),
        rows,
        strides,
        longer,
        demand_of(asked, costs, rows * strides),
        loading * max(1.0, rows * FILE_EVERY_S / loaded),
    )


def _rows_in_a_stride(asked: Sequence[LiveQuery], costs: Mapping[str, QueryCost], demand: float) -> float:
    """Rows a second of each table, for windows of one stride."""
    low, high = 1.0, 1e7
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if demand_of(asked, costs, middle) < demand else (low, middle)
    return low


def demand_of(asked: Sequence[LiveQuery], costs: Mapping[str, QueryCost], rows: float) -> float:
    """The tracks that the queries need with that many rows of each table per second of a stride."""
    part_us = min(query.stride_us for query in asked) / 4
    return sum(
        costs[query.name].cost_us(rows * query.tables * query.stride_us / SECOND, part_us) / query.stride_us
        for query in asked
    )


def project(asked: Sequence[LiveQuery], rows_a_second: int, pool: str) -> str:
    """The warehouse as a user's file. `pool`: the settings of the queries' pool."""
    lines = [
        "name: table-2",
        "storage: warehouse",
        f"pools: {{updates: {{tracks: 1}}, queries: {{tracks: 1, {pool}}}}}",
        "feeds:",
        *(
            f'  {name}: {{path: landing/{name}, format: parquet, schema: "ts timestamp, number long", '
            f"timestamp: ts, period: {FILE_EVERY_S}s, rows: {rows_a_second}}}"
            for name in TABLES
        ),
        "tables:",
        *(
            f'  {name}: {{feed: {name}, pool: updates, select: "SELECT ts, number % {_KEYS} AS k, '
            f'number DIV {_KEYS} % {_VALUES} AS v FROM {name}", slices: {{by: k}}, cost: {{startup: 1s}}}}'
            for name in TABLES
        ),
    ]
    if asked:
        lines.append("queries:")
    lines += [
        f'  {query.name}: {{sql: "{query.sql}", window: {query.window_us // MILLISECOND}ms, '
        f"stride: {query.stride_us // MILLISECOND}ms, weight: {query.weight}, "
        f"selectivity: {query.selectivity}, pool: queries}}"
        for query in asked
    ]
    return "\n".join([*lines, ""])
