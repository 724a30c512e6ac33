"""What is computed from aggregates is what Spark computes, in intervals that hold. Without Spark."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import DecimalType, DoubleType, LongType, StructField, StructType

from cases import rest_in_soak
from freshline.base.errors import InputError
from freshline.spark.answering.formulas import slopes, value_of
from freshline.spark.answering.merging import MergedColumns, merged_columns
from freshline.spark.answering.partials import SLICE, Partials, partials_of, with_inputs
from freshline.sql.from_tables import ReadableTable
from freshline.sql.query_sql import read_query
from freshline.sql.slices import NO_SLICE, SLICES, Slices

TABLES = {"t": ReadableTable("t", ("ts", "k", "a", "b"), "ts", Slices())}
FORMULAS = (
    "sum(a) / sum(b)",
    "2 * avg(a) - 1",
    "(sum(a) + 3 * sum(b)) / count(*)",
    "-sum(a) / nullif(avg(b), 0)",
)


def partials(formulas: tuple[str, ...], kind=DoubleType) -> Partials:
    """Of columns that all are of that type, but for counts."""
    sql = with_inputs(
        read_query(f"SELECT k, {', '.join(named(formulas))} FROM t GROUP BY k", TABLES.__getitem__)
    )
    types = {
        part.alias_or_name: LongType() if str(part).startswith(("k", "COUNT")) else kind()
        for part in sql.select.expressions
    }
    return partials_of(sql, [0], types)


def named(formulas: tuple[str, ...]) -> list[str]:
    return [f"{formula} AS f{number}" for number, formula in enumerate(formulas)]


def merged(found: Partials, slice_of, group, a, b, slices: int, lends: bool = False) -> MergedColumns:
    """The answer of rows, with their partial results computed here."""
    cells, place = np.unique(group * 1_000 + slice_of + 1, return_inverse=True)
    columns = {"_k0": cells // 1_000, SLICE: (cells % 1_000 - 1).astype(np.int16)}
    for output in found.outputs:
        if output.kind in ("key", "formula"):
            continue
        values = b if "b" in str(found.sql.split(f" AS _a{output.number}")[0].rsplit(",", 1)[-1]) else a
        columns[output.count] = np.bincount(place)
        columns[output.total] = np.bincount(place, weights=values)
        columns[output.squares] = np.bincount(place, weights=values**2)
    schema = StructType(
        [
            StructField(each.name, LongType() if each.kind in ("key", "count") else DoubleType())
            for each in found.outputs
        ]
    )
    return merged_columns(found, schema, [pa.table(columns)], slices, lends)


def truths(group, a, b) -> list[list[float]]:
    rows, found = np.bincount(group), []
    total_a, total_b = np.bincount(group, a), np.bincount(group, b)
    for each in range(len(rows)):
        n, x, y = rows[each], total_a[each], total_b[each]
        found.append([x / y, 2 * x / n - 1, (x + 3 * y) / n, -x / (y / n)])
    return found


@settings(max_examples=30)
@given(seed=st.integers(0, 1 << 32), rows=st.integers(5, 200))
def test_all_slices_give_the_exact_answer_and_intervals_of_no_length(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    group = np.append(np.arange(5), rng.integers(0, 5, rows - 5))
    a, b = rng.integers(-50, 50, rows) / 4, rng.integers(1, 50, rows) / 4
    found = merged(partials(FORMULAS), rng.integers(NO_SLICE, SLICES, rows), group, a, b, SLICES)
    assert [column.name for column in found.columns] == ["k", "f0", "f1", "f2", "f3"]
    expected = truths(group, a, b)
    for number, column in enumerate(found.columns[1:]):
        assert column.values == [pytest.approx(each[number], 1e-9, 1e-9) for each in expected]
        assert column.bounds == [(value, value) for value in column.values]
        assert column.seen is not None
    assert sum(found.columns[1].seen or ()) <= rows


@pytest.mark.parametrize("lends", rest_in_soak([True, False]))
def test_intervals_hold_the_truth_at_least_93_times_of_100(lends: bool) -> None:
    held: list[list[bool]] = [[] for _ in FORMULAS]
    found = partials(FORMULAS)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = 24_000
        group = rng.integers(0, 8, rows)
        a = rng.exponential(10, rows) if seed % 2 else rng.uniform(1, 20, rows)
        b = 0.5 * a + rng.exponential(5, rows)
        slice_of = rng.integers(0, SLICES, rows)
        slice_of[rng.random(rows) < 0.01] = NO_SLICE
        read = slice_of < 16
        answer = merged(found, slice_of[read], group[read], a[read], b[read], 16, lends)
        for row, expected in enumerate(truths(group, a, b)):
            for number, truth in enumerate(expected):
                low, high = (answer.columns[number + 1].bounds or ())[row]
                assert low is not None
                held[number].append(low <= truth <= high)
    shares = [np.mean(each) for each in held]
    assert all(0.93 <= share <= (1 if lends else 0.985) for share in shares), shares


def test_the_interval_of_a_ratio_is_that_of_an_average_where_it_is_one() -> None:
    rng = np.random.default_rng(1)
    a = rng.exponential(10, 400)
    found = partials(("sum(a) / count(*)", "avg(a)", "avg(a) * 1e0"))
    answer = merged(found, rng.integers(NO_SLICE, 16, 400), np.zeros(400, int), a, a, 16)
    ratio, average, formula = answer.columns[1:]
    assert ratio.values == [pytest.approx(average.values[0])]
    for column in (ratio, formula):
        assert column.bounds == [tuple(pytest.approx(end, 1e-9) for end in (average.bounds or ())[0])]


def test_whole_numbers_stay_whole_nothing_is_null_and_what_divides_by_zero_has_no_value() -> None:
    sql = with_inputs(
        read_query("SELECT sum(a) + 2 * count(*) AS w, sum(a) / count(*) AS r FROM t", TABLES.__getitem__)
    )
    names = [part.alias_or_name for part in sql.select.expressions]
    types = dict(zip(names, [LongType(), DoubleType(), LongType(), LongType()], strict=True))
    whole, ratio = (output.formula for output in partials_of(sql, [0], types).outputs[:2])
    assert value_of(whole, {2: 2**53 + 1, 3: 1}) == 2**53 + 3
    assert value_of(ratio, {2: 1, 3: 4}) == 0.25
    assert value_of(ratio, {2: 1, 3: 0}) is None
    assert value_of(ratio, {2: None, 3: 4}) is None
    with pytest.raises(ArithmeticError, match="64 bits"):
        value_of(whole, {2: 2**63 - 1, 3: 1})
    value, by = slopes(ratio, {2: np.array([3.0, np.nan]), 3: np.array([4.0, 0.0])})
    assert (value[0], by[2][0], by[3][0]) == (0.75, 0.25, -3 / 16)


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("sum(a) / 2", (DecimalType(38, 6), DecimalType(20, 2))),
        ("2.5 * sum(a)", (DecimalType(23, 1), LongType())),
        ("sum(a) / 2", (DecimalType(38, 6), LongType())),
    ],
)
def test_what_spark_computes_with_decimals_is_not_computed_here(sql: str, kinds) -> None:
    query = with_inputs(read_query(f"SELECT {sql} AS f FROM t", TABLES.__getitem__))
    names = [part.alias_or_name for part in query.select.expressions]
    with pytest.raises(InputError):
        partials_of(query, [0], dict(zip(names, kinds, strict=True)))
