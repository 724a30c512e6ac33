"""Estimates of requests are the printed ones, and what is in no slice is added exactly. Without Spark."""

from math import sqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from freshline.spark.answering.merging import AnswerColumn, merged_columns
from freshline.spark.answering.partials import SLICE, OutputColumn, Partials
from freshline.spark.answering.result_rows import chosen
from freshline.spark.loading.outliers import outliers_marked
from freshline.sql.result_clauses import ResultClauses, SortKey
from freshline.sql.slices import NO_SLICE, SLICES

KINDS = {"n": "count", "s": "sum", "m": "avg", "v": "var_samp", "p": "var_pop", "d": "stddev_samp"}
OUTPUTS = tuple(OutputColumn(name, kind, number) for number, (name, kind) in enumerate(KINDS.items()))
SCHEMA = StructType([StructField(name, LongType() if name == "n" else DoubleType()) for name in KINDS])
T_15 = 2.13145  # Student's t of 15 degrees of freedom, 97.5 %


def merged(slice_of, value, slices: int) -> dict[str, AnswerColumn]:
    """The answer of one group."""
    cells, place = np.unique(slice_of, return_inverse=True)
    count, total = np.bincount(place), np.bincount(place, weights=value)
    mean = total / count
    apart, squares = np.bincount(place, (value - mean[place]) ** 2), np.bincount(place, value**2)
    columns = {SLICE: cells.astype(np.int16)}
    for output in OUTPUTS:
        is_scatter = output.kind.startswith(("var", "stddev"))
        columns[output.count] = count
        columns[output.total] = mean if is_scatter else total
        columns[output.squares] = apart if is_scatter else squares
    found = merged_columns(Partials("", OUTPUTS, (), ()), SCHEMA, [pa.table(columns)], slices, lends=False)
    return {column.name: column for column in found.columns}


def test_intervals_are_the_printed_ones() -> None:
    rng = np.random.default_rng(1)
    slice_of, value = rng.integers(0, 16, 500), rng.exponential(10, 500)
    slice_of[slice_of == 3] = 4  # one of the slices has no row
    known = rng.exponential(1_000, 20)
    found = merged(np.append(slice_of, [NO_SLICE] * 20), np.append(value, known), 16)
    totals, counts = np.bincount(slice_of, value, 16), np.bincount(slice_of, minlength=16)
    expected, half = {}, {}
    for name, each, more in (("n", counts, 20), ("s", totals, known.sum())):
        expected[name] = more + 16 * each.sum()
        half[name] = T_15 * SLICES * sqrt((1 - 16 / SLICES) * each.var(ddof=1) / 16)
    expected["m"] = expected["s"] / expected["n"]
    residuals = totals - expected["m"] * counts
    half["m"] = T_15 * SLICES * sqrt((1 - 16 / SLICES) * residuals.var(ddof=1) / 16) / expected["n"]
    for name, value in expected.items():
        column = found[name]
        assert column.values == [pytest.approx(value)]
        assert column.bounds == [
            (pytest.approx(value - half[name], 1e-3), pytest.approx(value + half[name], 1e-3))
        ]
        assert column.seen == [500]


def test_of_a_key_that_was_seen_among_outliers_alone_more_may_be_in_a_slice_that_was_not_read() -> None:
    # Rows are dealt by key: 1 is in a slice that was read, of 2 there are outliers only.
    keys, slices = [1, 1, 2, None], [5, NO_SLICE, NO_SLICE, 5]
    columns = {"_k0": keys, SLICE: pa.array(slices, pa.int16()), "_c1": [40, 2, 3, 40]}
    columns |= {"_t1": [80, 50, 90, 80], "_q1": [160.0, 1250.0, 2700.0, 160.0]}
    outputs = OutputColumn("k", "key", 0), OutputColumn("s", "sum", 1)
    schema = StructType([StructField("k", LongType()), StructField("s", LongType())])
    found = merged_columns(
        Partials("", outputs, ("_k0",), ("_k0",)), schema, [pa.table(columns)], 128, lends=False
    )
    key, total = found.columns
    scaled = dict(zip(key.values, found.scaled, strict=True))
    assert scaled == {1: False, 2: True, None: True}
    assert dict(zip(key.values, total.values, strict=True)) == {1: 130, 2: 90, None: 160}
    assert total.seen is not None
    assert dict(zip(key.values, total.seen, strict=True)) == {1: 40, 2: 0, None: 40}


def weighted(slice_of, value, weight: float) -> float:
    """The variance of a sample, rows of no slice beside it."""
    weights = np.where(slice_of == NO_SLICE, 1.0, weight)
    mean = np.average(value, weights=weights)
    return float((weights * (value - mean) ** 2).sum() / (weights.sum() - weight))


def test_variances_have_intervals_by_leaving_out_slices() -> None:
    rng = np.random.default_rng(2)
    slice_of, value = rng.integers(0, 16, 400), 1e9 + rng.exponential(10, 400)
    slice_of[:10] = NO_SLICE
    found = merged(slice_of, value, 16)
    whole = weighted(slice_of, value, 16)
    without = [
        weighted(slice_of[slice_of != each], value[slice_of != each], SLICES / 15) for each in range(16)
    ]
    half = T_15 * sqrt((1 - 1 / 16) * 15 / 16 * ((np.log(without) - np.log(without).mean()) ** 2).sum())
    (low, high), (less, more) = found["v"].bounds[0], found["d"].bounds[0]
    assert found["v"].values == [pytest.approx(whole)]
    assert (low, high) == (
        pytest.approx(whole * np.exp(-half), 1e-3),
        pytest.approx(whole * np.exp(half), 1e-3),
    )
    assert found["d"].values == [pytest.approx(sqrt(whole))]
    assert (less, more) == (pytest.approx(sqrt(low), 1e-6), pytest.approx(sqrt(high), 1e-6))


@settings(max_examples=50)
@given(seed=st.integers(0, 1 << 32), rows=st.integers(0, 200))
def test_all_slices_give_the_exact_answer_and_intervals_of_no_length(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    value = 1e6 + rng.integers(-50, 50, rows) / 4
    found = merged(rng.integers(NO_SLICE, SLICES, rows), value, SLICES)
    expected = {
        "n": rows,
        "s": value.sum() if rows else None,
        "m": value.mean() if rows else None,
        "v": value.var(ddof=1) if rows > 1 else None,
        "p": value.var() if rows else None,
        "d": value.std(ddof=1) if rows > 1 else None,
    }
    for name, value in expected.items():
        (found_value,), (bounds,) = found[name].values, found[name].bounds
        assert found_value == (None if value is None else pytest.approx(value, 1e-9, 1e-9))
        assert bounds == ((None, None) if value is None else (found_value, found_value))


@given(seed=st.integers(0, 1 << 32), rows=st.integers(0, 300))
def test_outliers_are_at_most_three_of_a_hundred_and_none_is_smaller_than_another_row(
    seed: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    values = [
        None if rng.random() < 0.1 else rng.choice([0.0, 1.0, float("nan"), rng.normal()])
        for _ in range(rows)
    ]
    table = pa.table({"V": pa.array(values, pa.float64()), "_slice": pa.array([7] * rows, pa.int16())})
    slices = outliers_marked(table, "v")["_slice"].to_pylist()
    sizes = [-1.0 if value is None else np.inf if np.isnan(value) else abs(value) for value in values]
    largest = [size for size, number in zip(sizes, slices, strict=True) if number == NO_SLICE]
    others = [size for size, number in zip(sizes, slices, strict=True) if number != NO_SLICE]
    assert len(largest) <= 3 * rows // 100
    assert min(largest, default=np.inf) >= max(others, default=-1.0) or len(largest) == 3 * rows // 100
    assert not largest or min(largest) >= max(others)
    assert outliers_marked(table, None) is table


def test_rows_are_ordered_as_spark_orders_them_and_cut_after_that() -> None:
    nan = float("nan")
    columns = [[1.0, None, nan, -1.0, 1.0], ["b", "a", "c", "d", "a"]]
    for key, expected in [
        (SortKey(0, False, True), [1, 3, 0, 4, 2]),
        (SortKey(0, True, False), [2, 0, 4, 3, 1]),
        (SortKey(0, False, False), [3, 0, 4, 2, 1]),
    ]:
        assert chosen(ResultClauses(2, order=(key,)), columns) == expected
    both = (SortKey(0, True, True), SortKey(1, False, True))
    assert chosen(ResultClauses(2, order=both, limit=2, offset=2), columns) == [4, 0]
    assert chosen(ResultClauses(2, limit=0), columns) == []
    assert chosen(ResultClauses(2, offset=9), columns) == []
