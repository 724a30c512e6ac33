"""Columns of an answer that are computed from aggregates, such as `sum(a) / count(*)` or `2 * avg(x)`.

Each aggregate is combined from parts of the rows, and the formula is then computed from the aggregates. A
formula may have `+ - * /`, brackets, numbers and `nullif(x, number)`, over count, sum and avg of integers and
doubles. Decimals are excluded, because each step of a decimal formula has its own precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.sql.row_expressions import check_aggregate

Kind = Literal["whole", "double", "decimal"]
OPERATORS: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_AGGREGATES: Final = (exp.Count, exp.Sum, exp.Avg)
_DIGITS_MAX: Final = 18  # of an integer: within 64 bits


def without_filters(select: exp.Select) -> None:
    """Rewrites `sum(a) FILTER (WHERE c)` as the equivalent and simpler `sum(CASE WHEN c THEN a END)`."""
    for node in [*select.find_all(exp.Filter)]:
        aggregate, condition = node.this, node.expression
        if not isinstance(condition, exp.Where) or not isinstance(aggregate, exp.AggFunc):
            continue
        argument = aggregate.this
        if isinstance(argument, exp.Distinct) or isinstance(node.parent, exp.Window) or aggregate.expressions:
            continue
        value = exp.Literal.number(1) if isinstance(argument, exp.Star) else argument.copy()
        chosen = exp.Case(ifs=[exp.If(this=condition.this.copy(), true=value)])
        aggregate.set("this", chosen)
        node.replace(aggregate)


def is_formula(node: exp.Expr) -> bool:
    """Whether it is computed only from aggregates and numbers."""
    if type(node) in _AGGREGATES:
        return False
    inside = [*_leaves(node)]
    return any(type(leaf) in _AGGREGATES for leaf in inside) and all(
        type(leaf) in _AGGREGATES or _is_number(leaf) for leaf in inside
    )


def check_formula(node: exp.Expr) -> None:
    """Raises InputError if parts of the rows cannot give one of its aggregates."""
    for aggregate in aggregates_in(node):
        check_aggregate(aggregate)


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of a formula, each once."""
    found: list[exp.Expr] = []
    for leaf in _leaves(node):
        if type(leaf) in _AGGREGATES and leaf not in found:
            found.append(leaf)
    return found


def kind_of(node: exp.Expr, aggregates: Sequence[exp.Expr], kinds: Sequence[Kind]) -> Kind:
    """The kind of its values, as in Spark. Raises InputError if it computes with decimals."""
    node = node.unnest()
    if node in aggregates:
        return kinds[aggregates.index(node)]
    if isinstance(node, exp.Literal):
        if node.is_int:
            return "whole"
        return "double" if "e" in node.name.lower() else "decimal"
    if isinstance(node, exp.Neg | exp.Nullif):
        return kind_of(node.this, aggregates, kinds)
    sides = {kind_of(each, aggregates, kinds) for each in (node.this, node.expression)}
    if "double" in sides:
        return "double"
    if "decimal" in sides:
        raise InputError("it computes with decimals", "Write numbers such as 100 or 1e2 for 100.0")
    return "double" if isinstance(node, exp.Div) else "whole"


def _leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of the formula from left to right, including those outside the grammar."""
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) in (*OPERATORS, exp.Paren, exp.Neg):
            pending += part.iter_expressions(reverse=True)
        elif type(part) is exp.Nullif and _is_number(part.expression):
            pending.append(part.this)
        else:
            yield part


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= _DIGITS_MAX
