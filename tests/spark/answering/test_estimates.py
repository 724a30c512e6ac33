"""Intervals from slices hold the truth, whatever the rows are like. Without Spark."""

from math import atan, exp, lgamma, pi, sqrt
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import DecimalType, DoubleType, LongType, StructField, StructType

from cases import rest_in_soak
from freshline.spark.answering.estimates import student_t
from freshline.spark.answering.merging import MergedAnswer, merge
from freshline.spark.answering.partials import SLICE, OutputColumn, Partials
from freshline.sql.slices import SLICES

OUTPUTS = (
    OutputColumn("g", "key", 0),
    OutputColumn("n", "count", 0),
    OutputColumn("s", "sum", 1),
    OutputColumn("m", "avg", 2),
)
QUADRATURE = np.polynomial.legendre.leggauss(80)
PARTIALS = Partials("", OUTPUTS, ("_k0",), ())
SCHEMA = StructType([StructField(name, LongType() if name in "gn" else DoubleType()) for name in "gnsm"])


def answer(slice_of, group, value, slices: int) -> MergedAnswer:
    cells, place = np.unique(group * SLICES + slice_of, return_inverse=True)
    count, total = np.bincount(place), np.bincount(place, weights=value)
    squares = np.bincount(place, weights=value**2)
    columns = {"_k0": cells // SLICES, SLICE: cells % SLICES, "_c0": count}
    for number in (1, 2):
        columns |= {f"_c{number}": count, f"_t{number}": total, f"_q{number}": squares}
    return merge(PARTIALS, SCHEMA, [pa.table(columns)], slices)


def drawn(rng: np.random.Generator, kind: str, rows: int):
    if kind == "normal":
        return rng.normal(100, 30, rows)
    if kind == "lognormal":
        return rng.lognormal(3, 1.5, rows)
    return rng.normal(0, 1, rows) if kind == "signed" else rng.integers(0, 5, rows).astype(float)


@pytest.mark.parametrize("dealing", ["by chance", "by key"])
@pytest.mark.parametrize("kind", rest_in_soak(["lognormal", "normal", "signed", "small"]))
def test_intervals_hold_the_truth_at_least_93_times_of_100(kind: str, dealing: str) -> None:
    held: dict[str, list[bool]] = {"n": [], "s": [], "m": []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows, groups = int(10 ** rng.uniform(2, 4)), int(10 ** rng.uniform(0, 1.5))
        group, value = np.minimum(rng.zipf(1.4, rows) - 1, groups - 1), drawn(rng, kind, rows)
        slice_of = rng.integers(0, SLICES, rows)
        if dealing == "by key":
            slice_of = rng.integers(0, SLICES, 500)[rng.integers(0, 500, rows)]
        slices = int(rng.choice([4, 16, 64, 128, 200]))
        read = slice_of < slices
        if not read.any():
            continue
        found = answer(slice_of[read], group[read], value[read], slices)
        count, total = np.bincount(group), np.bincount(group, weights=value)
        truth = {"n": count, "s": total, "m": total / np.maximum(1, count)}
        for each in found.estimates:
            if each.low is not None and each.high is not None:
                true = truth[each.column][found.rows[each.row]["g"]]
                held[each.column].append(each.low - 1e-9 <= true <= each.high + 1e-9)
    for column, each in held.items():
        assert len(each) > 500
        assert np.mean(each) >= 0.93, (column, np.mean(each))


@given(seed=st.integers(0, 1 << 32), rows=st.integers(1, 300))
def test_all_slices_give_the_exact_answer_and_no_estimates(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    group, value = rng.integers(0, 7, rows), rng.integers(-50, 50, rows) / 4
    found = answer(rng.integers(0, SLICES, rows), group, value, SLICES)
    assert found.estimates == ()
    assert {row["g"]: (row["n"], row["s"], row["m"]) for row in found.rows} == {
        int(each): (
            int((group == each).sum()),
            float(value[group == each].sum()),
            float(value[group == each].sum() / (group == each).sum()),
        )
        for each in set(group.tolist())
    }


def test_a_group_of_one_row_has_an_interval_only_where_others_tell_how_far_values_lie_apart() -> None:
    alone = answer(np.array([3]), np.array([0]), np.array([5.0]), 10)
    assert [(each.low, each.high) for each in alone.estimates if each.column == "m"] == [(None, None)]
    several = answer(np.array([3, 4, 5]), np.array([0, 1, 1]), np.array([5.0, 6.0, 8.0]), 10)
    assert all(each.low is not None for each in several.estimates)


def test_one_slice_has_no_scatter_and_still_an_interval() -> None:
    found = answer(np.zeros(20, int), np.zeros(20, int), np.arange(20.0), 1)
    for each in found.estimates:
        assert each.low is not None
        assert each.high is not None
        assert each.low < each.value < each.high


def test_integers_beyond_64_bits_are_an_error_and_large_ones_are_exact() -> None:
    outputs = (OutputColumn("s", "sum", 0),)
    schema = StructType([StructField("s", LongType())])
    for sums, expected in [((2**62, 2**62 - 1), 2**63 - 1), ((-(2**62), -(2**62) + 1), 1 - 2**63)]:
        parts = pa.table({SLICE: [0, 1], "_c0": [1, 1], "_t0": list(sums), "_q0": [0.0, 0.0]})
        assert merge(Partials("", outputs, (), ()), schema, [parts], SLICES).rows == ({"s": expected},)
    parts = pa.table({SLICE: [0, 1], "_c0": [1, 1], "_t0": [2**62, 2**62], "_q0": [0.0, 0.0]})
    with pytest.raises(ArithmeticError, match="64 bits"):
        merge(Partials("", outputs, (), ()), schema, [parts], SLICES)


def test_nan_is_the_largest_number_and_nulls_and_nan_are_groups() -> None:
    outputs = (OutputColumn("g", "key", 0), OutputColumn("x", "max", 0), OutputColumn("y", "min", 1))
    schema = StructType([StructField(name, DoubleType()) for name in "gxy"])
    nan = float("nan")
    counts = {"_c0": [1, 1, 1], "_c1": [1, 1, 1]}
    keys = {"_k0": [1.0, nan, None]}
    parts = [
        pa.table({**keys, SLICE: [0, 0, 0], **counts, "_t0": [nan, 1.0, 2.0], "_t1": [nan, 1.0, 2.0]}),
        pa.table({**keys, SLICE: [1, 1, 1], **counts, "_t0": [3.0, nan, 5.0], "_t1": [3.0, nan, 5.0]}),
    ]
    found = merge(Partials("", outputs, ("_k0",), ()), schema, parts, SLICES)
    assert sorted(map(str, (tuple(row.values()) for row in found.rows))) == sorted(
        map(str, [(1.0, nan, 3.0), (nan, nan, 1.0), (None, 5.0, 2.0)])
    )


def test_decimals_are_scaled_to_their_own_digits() -> None:
    schema = StructType([StructField("s", DecimalType(20, 3))])
    sums = pa.array([1, 2], pa.decimal128(20, 3))
    parts = pa.table({SLICE: [0, 1], "_c0": [1, 1], "_t0": sums, "_q0": [1.0, 4.0]})
    found = merge(Partials("", (OutputColumn("s", "sum", 0),), (), ()), schema, [parts], 7)
    assert str(found.rows[0]["s"]) == "109.714"


@given(st.floats(min_value=1, max_value=1000))
@example(1.5)
def test_student_s_t_is_exceeded_by_2_5_percent(freedom: float) -> None:
    """The density of t = √ν·tan θ is that of θ, in proportion to cos(θ)^(ν − 1)."""
    lower = atan(student_t(np.array([freedom]))[0] / sqrt(freedom))
    points, weights = QUADRATURE
    half = (pi / 2 - lower) / 2
    area = half * float(weights @ np.cos(lower + half * (1 + points)) ** (freedom - 1))
    exceeded = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi) * area
    assert exceeded == pytest.approx(0.025, rel=0.006)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (1.5, 6.01666), (2.5, 3.57465), (5, 2.5706), (15, 2.1314), (30, 2.0423), (255, 1.9693)],
)
def test_student_s_t_is_the_printed_one(freedom: float, expected: float) -> None:
    assert student_t(np.array([float(freedom)]))[0] == pytest.approx(expected, rel=1e-3)
    assert student_t(np.array([1e9]))[0] == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-5)
