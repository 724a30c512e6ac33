"""Formulas over aggregates: their values as Spark computes them, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sqlglot import exp

from freshline.spark.answering.estimates import Numbers

_LARGEST: Final = (1 << 63) - 1
Value = int | float | None


def value_of(node: exp.Expr, values: Mapping[int, Any]) -> Value:
    """The value for one group; `values` are those of other outputs, by number. Division by 0 gives None."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        found: Value = values[int(node.name)]
        return found
    if isinstance(node, exp.Literal):
        return int(node.name) if node.is_int else float(node.name)
    inner = value_of(node.this, values)
    if isinstance(node, exp.Neg):
        return None if inner is None else _checked(-inner)
    other = value_of(node.expression, values)
    if isinstance(node, exp.Nullif):
        return None if inner == other else inner
    if inner is None or other is None:
        return None
    if isinstance(node, exp.Div):
        return None if other == 0 else float(inner) / float(other)
    if isinstance(node, exp.Add):
        return _checked(inner + other)
    return _checked(inner - other if isinstance(node, exp.Sub) else inner * other)


def _checked(value: int | float) -> int | float:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ArithmeticError(f"a number computed from aggregates is {value}, which is beyond 64 bits")
    return value


def slopes(node: exp.Expr, values: Mapping[int, Numbers]) -> tuple[Numbers, dict[int, Numbers]]:
    """By group, the value and its derivative by each output; NaN if there is none.

    An estimate from several totals varies like their sum weighted with these derivatives. For a ratio that
    is the estimate by residuals.
    """
    node = node.unnest()
    if isinstance(node, exp.Column):
        own = values[int(node.name)]
        return own, {int(node.name): np.ones(len(own))}
    if isinstance(node, exp.Literal):
        return np.full(len(next(iter(values.values()))), float(node.name)), {}
    value, by = slopes(node.this, values)
    if isinstance(node, exp.Neg):
        return -value, {number: -slope for number, slope in by.items()}
    if isinstance(node, exp.Nullif):
        return value, by
    other, by_other = slopes(node.expression, values)
    none = np.zeros(len(value))
    with np.errstate(all="ignore"):
        left, right = _partial(node, value, other)
        found = {
            number: left * by.get(number, none) + right * by_other.get(number, none)
            for number in by | by_other
        }
        return _computed(node, value, other), found


def _computed(node: exp.Expr, value: Numbers, other: Numbers) -> Numbers:
    if isinstance(node, exp.Add):
        return value + other
    if isinstance(node, exp.Sub):
        return value - other
    return value * other if isinstance(node, exp.Mul) else value / other


def _partial(node: exp.Expr, value: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    """The derivatives by the left and the right operand."""
    one = np.ones(len(value))
    if isinstance(node, exp.Add):
        return one, one
    if isinstance(node, exp.Sub):
        return one, -one
    if isinstance(node, exp.Mul):
        return other, value
    return 1 / other, -value / other**2
