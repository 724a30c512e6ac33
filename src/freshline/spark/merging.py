"""The answers of a query's parts put together: rows, scaled where slices are missing, and estimates.

From all slices the answer is Spark's own: integers and decimals to the last digit, doubles but for the order
in which they are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from freshline.definitions.slices import SLICES
from freshline.spark.estimates import Groups, Numbers
from freshline.spark.partials import Output, Partials

Integers = npt.NDArray[np.int64]
_EXACT: Final = pa.decimal128(38, 0)
_LARGEST: Final = (1 << 63) - 1
# As Spark divides decimals: to 38 digits after the point, then to those of the type.
_WIDE: Final = Context(prec=120, rounding=ROUND_HALF_UP)
_QUOTIENT: Final = Decimal(1).scaleb(-38)
# What is computed with doubles may be off by its last digits: so wide an interval is at least.
_ROUNDING: Final = 1e-12


class Estimate(NamedTuple):
    """A value of the answer that comes from some of the slices, and where it lies with 95 % probability.

    None: on that side nothing is known. So it is with `min` and `max`, which are of what was seen.
    """

    row: int
    column: str
    value: Any
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    rows: tuple[dict[str, Any], ...]
    estimates: tuple[Estimate, ...]


def merge(partials: Partials, schema: StructType, parts: Sequence[pa.Table], slices: int) -> Answer:
    """The answer of parts that together read so many slices; `schema` is the answer's."""
    if not slices:
        return Answer((), ())
    together = pa.concat_tables(parts).combine_chunks()
    if not partials.outputs:
        return Answer(tuple(together.to_pylist()), ())
    return _Merging(partials, schema, together, slices).answer()


class _Merging:
    def __init__(self, partials: Partials, schema: StructType, parts: pa.Table, slices: int) -> None:
        self._partials = partials
        self._schema = schema
        self._parts = parts
        self._slices = slices
        self._group, first = _groups([parts[name] for name in partials.keys], parts.num_rows)
        self._size = len(first) if partials.keys else 1
        self._keys = parts.select(list(partials.keys)).take(pa.array(first)) if partials.keys else None
        self._groups = Groups(self._group, self._size, slices)
        self._scaled = self._which_scaled()

    def answer(self) -> Answer:
        columns: dict[str, list[Any]] = {}
        estimates: list[Estimate] = []
        for output in self._partials.outputs:
            if output.kind == "key":
                assert self._keys is not None
                columns[output.name] = self._keys[f"_k{output.number}"].to_pylist()
                continue
            values, halves = self._aggregate(output)
            columns[output.name] = values
            estimates += self._estimates(output, values, halves)
        rows = tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        return Answer(rows, tuple(sorted(estimates, key=lambda each: each.row)))

    def _which_scaled(self) -> list[bool]:
        """Of each group, whether rows of it may be in slices that were not read."""
        missing = self._slices < SLICES
        if self._keys is None or not self._partials.whole or not missing:
            return [missing] * self._size
        # Rows without a key are dealt by chance, so theirs is a group like any other.
        known = [self._keys[name].is_valid().to_numpy(zero_copy_only=False) for name in self._partials.whole]
        return [not any(each) for each in zip(*known, strict=True)]

    def _aggregate(self, output: Output) -> tuple[list[Any], Numbers | None]:
        """The values by group, and half the lengths of their intervals."""
        if output.kind in ("min", "max"):
            return self._extremes(output), None
        counts = self._doubles(output.count)
        counted = [int(each) for each in _added(self._parts[output.count], self._group, self._size)]
        if output.kind == "count":
            values = [self._scale(each, at, round) for at, each in enumerate(counted)]
            return values, self._groups.of_total(counts, counts, counts)
        added = _added(self._parts[output.total], self._group, self._size)
        totals, squares = self._doubles(output.total), self._doubles(output.squares)
        if output.kind == "avg":
            means = [_mean(each, count) for each, count in zip(added, counted, strict=True)]
            mean_type = self._schema[output.name].dataType
            if isinstance(mean_type, DecimalType):
                means = [None if each is None else _rounded(each, mean_type.scale) for each in means]
            return means, self._groups.of_mean(totals, counts, squares)
        to_type = self._rounding(output)
        values = [
            None if not count else self._scale(each, at, to_type)
            for at, (each, count) in enumerate(zip(added, counted, strict=True))
        ]
        return values, self._groups.of_total(totals, counts, squares)

    def _rounding(self, output: Output) -> Callable[[Fraction], Any]:
        kind = self._schema[output.name].dataType
        if isinstance(kind, DecimalType):
            scale = kind.scale
            return lambda value: _rounded(_WIDE.divide(value.numerator, value.denominator), scale)
        return round if isinstance(kind, IntegralType) else float

    def _scale(self, value: Any, group: int, rounded: Callable[[Fraction], Any]) -> Any:
        if isinstance(value, float):
            return value * SLICES / self._slices if self._scaled[group] else value
        if not self._scaled[group]:
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise ArithmeticError(f"a sum of integers is {value}, which is beyond 64 bits")
            return value
        return rounded(Fraction(value) * SLICES / self._slices)

    def _extremes(self, output: Output) -> list[Any]:
        """Compared as Spark does, to which NaN is the largest number."""
        found: list[Any] = [None] * self._size
        is_better = _is_less if output.kind == "min" else _is_greater
        for group, value in zip(self._group.tolist(), self._parts[output.total].to_pylist(), strict=True):
            if value is not None and (found[group] is None or is_better(value, found[group])):
                found[group] = value
        return found

    def _doubles(self, name: str) -> Numbers:
        column = pc.fill_null(self._parts[name].cast(pa.float64(), safe=False), 0.0)
        return np.asarray(column.to_numpy(), np.float64)

    def _estimates(self, output: Output, values: list[Any], halves: Numbers | None) -> list[Estimate]:
        found = []
        seen = None if halves is None else self._groups.added(self._doubles(output.count))
        for row, (value, scaled) in enumerate(zip(values, self._scaled, strict=True)):
            if value is None or not scaled:
                continue
            low: float | None
            high: float | None
            if halves is None:
                number = _number(value)
                low, high = (None, number) if output.kind == "min" else (number, None)
            else:
                half, middle = float(halves[row]), float(value)
                half += _ROUNDING * abs(middle)
                is_known = isfinite(half) and isfinite(middle)
                low, high = (middle - half, middle + half) if is_known else (None, None)
                if output.kind == "count" and low is not None and seen is not None:
                    low = max(low, float(seen[row]))
            found.append(Estimate(row, output.name, value, low, high))
        return found


def _groups(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Integers, Integers]:
    """The number of each row's group, and a row of each group."""
    group = np.zeros(rows, np.int64)
    first = np.zeros(min(rows, 1), np.int64)
    for key in keys:
        codes = _codes(key)
        # Kept below the number of rows, so that no product runs over.
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
    """A column added up by group: exactly, but for doubles."""
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


def _mean(total: Any, count: int) -> Any:
    if not count:
        return None
    if isinstance(total, Decimal):
        return _WIDE.quantize(_WIDE.divide(total, count), _QUOTIENT)
    return total / count


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
