"""Literal numbers and lengths of time in a query."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from sqlglot import exp

from freshline.base.duration import parse_duration
from freshline.base.errors import InputError

_NUMBER: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,10})?([eE][0-9])?")
_NUMBERS: Final = frozenset({exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE})


def number(node: exp.Expr) -> Fraction | None:
    """The value of a number such as 10, 10L, 1e3, -5 or 5 * 60; None if it is not a plain number."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        is_number = not node.is_string and _NUMBER.fullmatch(node.name)
        return Fraction(node.name) if is_number else None
    if isinstance(node, exp.Neg):
        value = number(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Cast):  # such as 10L
        is_plain = isinstance(node.this, exp.Literal) and node.to.this in _NUMBERS
        return number(node.this) if is_plain else None
    if isinstance(node, exp.Mul | exp.Add | exp.Sub):
        one, other = number(node.this), number(node.expression)
        if one is None or other is None:
            return None
        if isinstance(node, exp.Mul):
            return one * other
        return one + other if isinstance(node, exp.Add) else one - other
    return None


def whole_number(node: exp.Expr) -> int | None:
    value = number(node)
    return int(value) if value is not None and value.denominator == 1 else None


def interval_us(node: exp.Expr) -> int | None:
    """The length of an interval such as INTERVAL 1 HOUR; None if it is not a plain interval."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        length_us = interval_us(node.this)
        return None if length_us is None else -length_us
    if isinstance(node, exp.Add):  # such as INTERVAL 1 HOUR 30 MINUTES
        one_us, other_us = interval_us(node.this), interval_us(node.expression)
        return None if one_us is None or other_us is None else one_us + other_us
    unit = node.args.get("unit")
    is_plain = isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal)
    if not is_plain or isinstance(unit, exp.IntervalSpan):
        return None
    count = node.this.name.strip()
    sign, count = (-1, count[1:]) if unit and count.startswith("-") else (1, count)
    length_us = duration_us(f"{count} {unit.name if unit else ''}")
    return None if length_us is None else sign * length_us


def duration_us(text: str) -> int | None:
    try:
        return parse_duration(text)
    except InputError:
        return None
