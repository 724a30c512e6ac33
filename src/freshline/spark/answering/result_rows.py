"""HAVING, ORDER BY, LIMIT and OFFSET on the rows of an answer that was merged from parts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cmp_to_key, partial
from math import isnan
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from freshline.sql.result_clauses import ResultClauses, SortKey, number_of

_SORTED = (BinaryType, BooleanType, DateType, NumericType, TimestampNTZType, TimestampType)


def can_apply(clauses: ResultClauses, types: Sequence[DataType]) -> bool:
    """Whether outputs of these types can be compared here as in Spark."""
    return all(isinstance(types[number], NumericType) for number in clauses.compared()) and all(
        isinstance(types[key.output], _SORTED) or types[key.output] == StringType() for key in clauses.order
    )


def chosen(clauses: ResultClauses, columns: Sequence[Sequence[Any]]) -> list[int]:
    """The numbers of the resulting rows, in order; `columns` are all outputs."""
    rows = range(len(columns[0]) if columns else 0)
    having = clauses.having
    kept = [row for row in rows if having is None or _holds(having, columns, row) is True]
    if clauses.order:
        kept.sort(key=cmp_to_key(partial(_order, clauses.order, columns)))
    end = None if clauses.limit is None else clauses.offset + clauses.limit
    return kept[clauses.offset : end]


def _holds(node: exp.Expr, columns: Sequence[Sequence[Any]], row: int) -> bool | None:
    """Whether a row fulfils the condition, as in SQL: a comparison with null is neither true nor false."""
    node = node.unnest()
    if isinstance(node, exp.And | exp.Or):
        sides = _holds(node.this, columns, row), _holds(node.expression, columns, row)
        deciding = isinstance(node, exp.Or)
        if deciding in sides:
            return deciding
        return None if None in sides else not deciding
    if isinstance(node, exp.Not):
        inner = _holds(node.this, columns, row)
        return None if inner is None else not inner
    value = _value(node.this, columns, row)
    if isinstance(node, exp.Is):
        return value is None
    if isinstance(node, exp.Between):
        low = _compared(exp.GTE, value, _value(node.args["low"], columns, row))
        high = _compared(exp.LTE, value, _value(node.args["high"], columns, row))
        return False if False in (low, high) else None if None in (low, high) else True
    return _compared(type(node), value, _value(node.expression, columns, row))


def _value(node: exp.Expr, columns: Sequence[Sequence[Any]], row: int) -> Any:
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return -_value(node.this, columns, row)
    if isinstance(node, exp.Column):
        return columns[number_of(node)][row]
    if node.is_int:
        return int(node.name)
    # To Spark numbers with an exponent are doubles, others decimals.
    return float(node.name) if "e" in node.name.lower() else Decimal(node.name)


def _compared(kind: type[exp.Expr], one: Any, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    sign = _sign(one, other)
    holds: dict[type[exp.Expr], bool] = {
        exp.EQ: sign == 0, exp.NEQ: sign != 0, exp.LT: sign < 0, exp.LTE: sign <= 0, exp.GT: sign > 0,
        exp.GTE: sign >= 0,
    }  # fmt: skip
    return holds[kind]


def _sign(one: Any, other: Any) -> int:
    """Below 0 if `one` is less, as in Spark: NaN is the largest number, and a double makes both doubles."""
    if isinstance(one, float) or isinstance(other, float):
        one, other = float(one), float(other)
        if isnan(one) or isnan(other):
            return int(isnan(one)) - int(isnan(other))
    return int(one > other) - int(one < other)


def _order(keys: Sequence[SortKey], columns: Sequence[Sequence[Any]], one: int, other: int) -> int:
    for key in keys:
        values = columns[key.output][one], columns[key.output][other]
        if None in values:
            sign = int(values[1] is None) - int(values[0] is None)
            sign = sign if key.is_null_first else -sign
        else:
            sign = _sign(*values) * (-1 if key.is_descending else 1)
        if sign:
            return sign
    return 0
