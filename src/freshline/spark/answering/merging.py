"""Merges the answers of a query's parts: rows, scaled if slices are missing, and estimates.

From all slices the answer is the same as Spark's: integers and decimals to the last digit, doubles except for
the order of addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import isfinite, isnan
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DecimalType, IntegralType, StructType
from sqlglot import exp

from freshline.spark.answering.estimates import Groups, Numbers
from freshline.spark.answering.formulas import slopes, value_of
from freshline.spark.answering.partials import SCATTERS, SLICE, OutputColumn, Partials
from freshline.spark.answering.scatter import scatter_of
from freshline.sql.slices import NO_SLICE, SLICES

Integers = npt.NDArray[np.int64]
_EXACT: Final = pa.decimal128(38, 0)
_LARGEST: Final = (1 << 63) - 1
# Spark divides decimals to 38 digits after the point, then rounds to those of the type.
_WIDE: Final = Context(prec=120, rounding=ROUND_HALF_UP)
_QUOTIENT: Final = Decimal(1).scaleb(-38)
# The least width of an interval: the last digits of a result in doubles may be wrong.
_ROUNDING: Final = 1e-12


class Estimate(NamedTuple):
    """An estimated value of the answer and its 95 % interval.

    A bound is None if it is not known. For `min` and `max`, of the rows that were read, one side is unknown.
    """

    row: int
    column: str
    value: Any
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class MergedAnswer:
    rows: tuple[dict[str, Any], ...]
    estimates: tuple[Estimate, ...]


Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer, by row."""

    name: str
    kind: str
    values: list[Any]
    bounds: list[Bounds] | None = None  # of an estimated column; (None, None): not known
    seen: list[int] | None = None  # of an aggregate: the number of values read for each


@dataclass(frozen=True, slots=True)
class MergedColumns:
    columns: list[AnswerColumn]
    scaled: list[bool]  # by row: whether unread slices may have rows of its group


def merge(partials: Partials, schema: StructType, parts: Sequence[pa.Table], slices: int) -> MergedAnswer:
    """The answer from parts that together read `slices` slices; `schema` is the answer's."""
    if not slices:
        return MergedAnswer((), ())
    if not partials.outputs:
        return MergedAnswer(tuple(pa.concat_tables(parts).to_pylist()), ())
    merged = merged_columns(partials, schema, parts, slices)
    estimates = [
        Estimate(row, column.name, value, *_told(column, row))
        for column in merged.columns
        for row, (value, scaled) in enumerate(zip(column.values, merged.scaled, strict=True))
        if column.kind != "key" and value is not None and scaled
    ]
    values = [column.values for column in merged.columns]
    names = [column.name for column in merged.columns]
    rows = tuple(dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
    return MergedAnswer(rows, tuple(sorted(estimates, key=lambda each: each.row)))


def merged_columns(
    partials: Partials, schema: StructType, parts: Sequence[pa.Table], slices: int, lends: bool = True
) -> MergedColumns:
    """The columns of a grouped answer; `lends`: intervals must hold for groups with few rows too."""
    return _Merging(partials, schema, pa.concat_tables(parts).combine_chunks(), slices, lends).merged()


def _told(column: AnswerColumn, row: int) -> Bounds:
    if column.bounds is not None:
        return column.bounds[row]
    number = _number(column.values[row])
    return (None, number) if column.kind == "min" else (number, None)


class _Merging:
    def __init__(
        self, partials: Partials, schema: StructType, parts: pa.Table, slices: int, lends: bool
    ) -> None:
        self._partials = partials
        self._schema = schema
        self._slices = slices
        group, first = _groups([parts[name] for name in partials.keys], parts.num_rows)
        self._size = len(first) if partials.keys else 1
        self._keys = parts.select(list(partials.keys)).take(pa.array(first)) if partials.keys else None
        # Rows in no slice were all read and are added without scaling.
        sampled = np.asarray(parts[SLICE].to_numpy()) != NO_SLICE
        self._parts, self._group = parts.filter(sampled), group[sampled]
        self._known, self._known_group = parts.filter(~sampled), group[~sampled]
        self._scaled = self._which_scaled()
        self._groups = Groups(self._group, self._size, slices, lends)

    def merged(self) -> MergedColumns:
        plain = {
            at: self._column(output)
            for at, output in enumerate(self._partials.outputs)
            if output.formula is None
        }
        columns = [
            plain.get(at) or self._formula(each, plain) for at, each in enumerate(self._partials.shown)
        ]
        return MergedColumns(columns, self._scaled)

    def _column(self, output: OutputColumn) -> AnswerColumn:
        if output.kind == "key":
            assert self._keys is not None
            return AnswerColumn(output.name, output.kind, self._keys[f"_k{output.number}"].to_pylist())
        seen = [int(each) for each in self._groups.added(self._doubles(output.count))]
        if output.kind in ("min", "max"):
            return AnswerColumn(output.name, output.kind, self._extremes(output), None, seen)
        if output.kind in SCATTERS:
            values, bounds = self._scatter(output)
            return AnswerColumn(output.name, output.kind, values, bounds, seen)
        values, halves = self._aggregate(output)
        return AnswerColumn(output.name, output.kind, values, self._bounds(output, values, halves), seen)

    def _formula(self, output: OutputColumn, found: Mapping[int, AnswerColumn]) -> AnswerColumn:
        """A column computed from others. Its error is that of a total weighted with the derivatives."""
        assert output.formula is not None
        numbers = sorted({int(column.name) for column in output.formula.find_all(exp.Column)})
        values = [
            value_of(output.formula, {number: found[number].values[row] for number in numbers})
            for row in range(self._size)
        ]
        known = {number: _or_nan(found[number].values) for number in numbers}
        _, weights = slopes(output.formula, known)
        cells, rows, scatter = (np.zeros(len(self._group)) for _ in range(3))
        for number, weight in weights.items():
            of_cell = np.nan_to_num(weight)[self._group]
            cell, squares = self._influence(self._partials.outputs[number], known[number])
            cells += of_cell * cell
            scatter += np.abs(of_cell) * np.sqrt(np.maximum(0.0, squares))  # as if all were fully correlated
            rows = np.maximum(rows, self._doubles(self._partials.outputs[number].count))
        halves = self._groups.of_total(cells, rows, scatter**2)
        seen = [min(each) for each in zip(*(found[number].seen or () for number in numbers), strict=True)]
        return AnswerColumn(output.name, output.kind, values, self._bounds(output, values, halves), seen)

    def _influence(self, output: OutputColumn, value: Numbers) -> tuple[Numbers, Numbers]:
        """Each partial result's contribution to an aggregate, as to a total, and its rows' squares."""
        counts = self._doubles(output.count)
        if output.kind == "count":
            return counts, counts
        totals, squares = self._doubles(output.total), self._doubles(output.squares)
        if output.kind == "sum":
            return totals, squares
        seen, known = self._added(output.count)
        size = np.maximum(1.0, _floats(known) + _floats(seen) * SLICES / self._slices)[self._group]
        mean = np.nan_to_num(value)[self._group]
        left = totals - mean * counts
        return left / size, (squares - 2 * mean * totals + mean**2 * counts) / size**2

    def _which_scaled(self) -> list[bool]:
        """By group, whether unread slices may have rows of it."""
        missing = self._slices < SLICES
        if self._keys is None or not self._partials.whole or not missing:
            return [missing] * self._size
        # Rows without a key get random slices, so their group is like any other. If only rows in no slice
        # were seen of a group, it is not known whether its slice was read.
        known = [self._keys[name].is_valid().to_numpy(zero_copy_only=False) for name in self._partials.whole]
        seen = np.bincount(self._group, minlength=self._size) > 0
        return [not (is_seen and any(each)) for is_seen, *each in zip(seen, *known, strict=True)]

    def _aggregate(self, output: OutputColumn) -> tuple[list[Any], Numbers]:
        """The values by group, and half the lengths of their intervals."""
        counted = output.total if output.kind == "distinct" else output.count
        counts, (seen, known) = self._doubles(counted), self._added(counted)
        if output.kind in ("count", "distinct"):
            values = [self._scale(seen[at], known[at], at, round) for at in range(self._size)]
            return values, self._groups.of_total(counts, counts, counts)
        added, added_known = self._added(output.total)
        totals, squares = self._doubles(output.total), self._doubles(output.squares)
        if output.kind == "avg":
            means = [
                self._mean(output, at, (added[at], added_known[at]), (seen[at], known[at]))
                for at in range(self._size)
            ]
            return means, self._groups.of_mean(
                totals, counts, squares, (_floats(added_known), _floats(known))
            )
        to_type = self._rounding(output)
        values = [
            self._scale(added[at], added_known[at], at, to_type) if seen[at] or known[at] else None
            for at in range(self._size)
        ]
        return values, self._groups.of_total(totals, counts, squares)

    def _mean(
        self, output: OutputColumn, group: int, totals: tuple[Any, Any], counts: tuple[int, int]
    ) -> Any:
        """The averages. Rows in slices also represent those that were not read; rows in no slice do not."""
        if not any(counts):
            return None
        weight = Fraction(SLICES, self._slices) if self._scaled[group] and counts[1] else Fraction(1)
        size = weight * counts[0] + counts[1]
        if isinstance(totals[0], float):
            return (float(weight) * totals[0] + totals[1]) / float(size)
        mean = (weight * Fraction(totals[0]) + Fraction(totals[1])) / size
        kind = self._schema[output.name].dataType
        exact = _WIDE.quantize(_WIDE.divide(mean.numerator, mean.denominator), _QUOTIENT)
        return _rounded(exact, kind.scale) if isinstance(kind, DecimalType) else float(exact)

    def _scatter(self, output: OutputColumn) -> tuple[list[Any], list[Bounds]]:
        """Variances and standard deviations by group, and their intervals."""
        names = output.count, output.total, output.squares
        parts = [_as_doubles(self._parts[name]) for name in names]
        known = [_as_doubles(self._known[name]) for name in names]
        scaled = np.array(self._scaled)
        scatter = scatter_of(self._groups, (self._group, *parts), (self._known_group, *known), self._size)
        values = scatter.values(output.kind, self._slices, scaled)
        if self._slices < SLICES:
            lows, highs = scatter.bounds(output.kind, self._slices, values)
            lows, highs = np.where(scaled, lows, values), np.where(scaled, highs, values)
        else:
            lows = highs = values
        bounds: list[Bounds] = [
            (float(low), float(high)) if isfinite(low) and isfinite(high) else (None, None)
            for low, high in zip(lows, highs, strict=True)
        ]
        return [None if isnan(value) else float(value) for value in values], bounds

    def _bounds(self, output: OutputColumn, values: list[Any], halves: Numbers) -> list[Bounds]:
        found: list[Bounds] = []
        least = self._added(output.count) if output.kind == "count" else None
        for row, value in enumerate(values):
            half, middle = float(halves[row]), 0.0 if value is None else float(value)
            half += _ROUNDING * abs(middle)
            if value is None or not isfinite(half) or not isfinite(middle):
                found.append((None, None))
                continue
            if not self._scaled[row]:
                half = 0.0
            low = middle - half
            if least is not None:
                low = max(low, float(least[0][row] + least[1][row]))
            found.append((low, middle + half))
        return found

    def _rounding(self, output: OutputColumn) -> Callable[[Fraction], Any]:
        kind = self._schema[output.name].dataType
        if isinstance(kind, DecimalType):
            scale = kind.scale
            return lambda value: _rounded(_WIDE.divide(value.numerator, value.denominator), scale)
        return round if isinstance(kind, IntegralType) else float

    def _scale(self, seen: Any, known: Any, group: int, rounded: Callable[[Fraction], Any]) -> Any:
        """The scaled value of the slices that were read, plus that of rows in no slice."""
        if isinstance(seen, float):
            return known + (seen * SLICES / self._slices if self._scaled[group] else seen)
        value = seen + known
        if self._scaled[group]:
            value = rounded(Fraction(known) + Fraction(seen) * SLICES / self._slices)
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ArithmeticError(f"a sum of integers is {value}, which is beyond 64 bits")
        return value

    def _added(self, name: str) -> tuple[list[Any], list[Any]]:
        """The sums of a column by group: of rows in slices and of rows in none."""
        seen = _added(self._parts[name], self._group, self._size)
        return seen, _added(self._known[name], self._known_group, self._size)

    def _extremes(self, output: OutputColumn) -> list[Any]:
        """The values of min or max, compared as in Spark: NaN is the largest number."""
        found: list[Any] = [None] * self._size
        is_better = _is_less if output.kind == "min" else _is_greater
        for parts, groups in ((self._parts, self._group), (self._known, self._known_group)):
            for group, value in zip(groups.tolist(), parts[output.total].to_pylist(), strict=True):
                if value is not None and (found[group] is None or is_better(value, found[group])):
                    found[group] = value
        return found

    def _doubles(self, name: str) -> Numbers:
        return _as_doubles(self._parts[name])


def _groups(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Integers, Integers]:
    """The number of each row's group, and a row of each group."""
    group = np.zeros(rows, np.int64)
    first = np.zeros(min(rows, 1), np.int64)
    for key in keys:
        codes = _codes(key)
        # Numbers stay below the number of rows, so that no product overflows.
        _, first, group = np.unique(
            group * (codes.max(initial=0) + 1) + codes, return_index=True, return_inverse=True
        )
    return group, first


def _codes(key: pa.ChunkedArray) -> Integers:
    if pa.types.is_nested(key.type):
        known: dict[str, int] = {}
        return np.array([known.setdefault(repr(value), len(known)) for value in key.to_pylist()], np.int64)
    # NULL is a value here like any other.
    encoded = key.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _added(column: pa.ChunkedArray, group: Integers, size: int) -> list[Any]:
    """The sums of a column by group, exact except for doubles."""
    if pa.types.is_floating(column.type):
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()
        return list(np.bincount(group, weights=values, minlength=size).tolist())
    is_integer = pa.types.is_integer(column.type)
    exact = column.cast(_EXACT) if is_integer else column
    sums = pa.table({"group": group, "value": exact}).group_by("group").aggregate([("value", "sum")])
    added: list[Any] = [0 if is_integer else Decimal(0)] * size
    for at, value in zip(sums["group"].to_pylist(), sums["value_sum"].to_pylist(), strict=True):
        if value is not None:
            added[at] = int(value) if is_integer else value
    return added


def _as_doubles(column: pa.ChunkedArray) -> Numbers:
    filled = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0)
    return np.asarray(filled.to_numpy(), np.float64)


def _floats(values: Sequence[Any]) -> Numbers:
    return np.array([float(value) for value in values], np.float64)


def _or_nan(values: Sequence[Any]) -> Numbers:
    return _floats([np.nan if value is None else value for value in values])


def _rounded(value: Decimal, scale: int) -> Decimal:
    return _WIDE.quantize(value, Decimal(1).scaleb(-scale))


def _is_less(one: Any, other: Any) -> bool:
    return bool(_order(one) < _order(other))


def _is_greater(one: Any, other: Any) -> bool:
    return bool(_order(one) > _order(other))


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (isnan(value), 0.0 if isnan(value) else value)
    return value


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) and isfinite(value) else None
