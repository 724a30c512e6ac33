"""What an expression expands to: how many expressions Spark makes of it, and how long its value can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlglot import exp

from freshline.sql.constants import duration_us, interval_us

# The length of a text, the elements of an array and the value of a number in a table, which the SQL does not
# show.
ASSUMED: Final = 100
# Counts beyond this are all too large; without a limit they could become numbers of thousands of digits.
_MOST: Final = 10**18
# Functions that Spark replaces by expressions with several copies of their arguments.
_COPIES: Final = {
    "BETWEEN": 2, "NULLIF": 2, "NULLIFZERO": 2, "RIGHT": 2, "WINDOW": 8, "SESSION_WINDOW": 8, "AVG": 3,
    "MEAN": 3,
    **dict.fromkeys(
        ("CORR", "COVAR_POP", "COVAR_SAMP", "KURTOSIS", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT",
         "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "SKEWNESS", "STD",
         "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VARIANCE_POP", "VAR_POP", "VAR_SAMP"), 12),
}  # fmt: skip
# Functions whose value is as long as all arguments together.
_SUMS: Final = frozenset(
    {"CONCAT", "CONCAT_WS", "DPIPE", "ELT", "FORMAT", "FORMAT_STRING", "JSON_FORMAT", "MAP", "NAMED_STRUCT",
     "OVERLAY", "PRINTF", "STRUCT", "STUFF", "TO_CSV", "TO_JSON", "TO_XML", "VAR_MAP", "ARRAY", "ARRAYS_ZIP",
     "ARRAY_UNION", "ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_INSERT", "MAP_CONCAT", "MAP_FROM_ARRAYS", "TUPLE"}
)  # fmt: skip
_FORMATS: Final = frozenset({"FORMAT", "FORMAT_STRING", "PRINTF"})
# Functions whose value is as long as the product of its two arguments' lengths, at most.
_PRODUCTS: Final = frozenset({"ARRAY_JOIN", "ARRAY_TO_STRING", "REGEXP_REPLACE", "REPLACE", "TRANSFORM"})
_LONGER: Final = {
    "BASE64": 2,
    "HEX": 2,
    "LOWER_HEX": 2,
    "TO_BASE64": 2,
    "UPPER": 3,
    "LOWER": 3,
    "URL_ENCODE": 3,
}
_PER_ELEMENT: Final = frozenset(
    {"EXPLODE", "EXPLODE_OUTER", "INLINE", "INLINE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "UNNEST",
     "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"}
)  # fmt: skip
_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ExpandedValue:
    """The counts of an expression."""

    size: int  # in expressions
    length: int  # of its value: characters of a text, elements of an array
    number: int  # the greatest value that it can have, as far as the SQL shows that
    rows: int = 1  # that it makes of one
    queries: tuple[Any, ...] = ()  # the counts of its subqueries


def most(values: Iterable[ExpandedValue]) -> ExpandedValue:
    """The greatest of each count."""
    listed = [*values]
    return ExpandedValue(
        max(each.size for each in listed),
        max(each.length for each in listed),
        max(each.number for each in listed),
        max(each.rows for each in listed),
    )


class ValueCounter:
    """Counts expressions. `column` has the counts of a column, `subquery` those of a query."""

    def __init__(
        self,
        column: Callable[[exp.Column], ExpandedValue],
        subquery: Callable[[exp.Expr], ExpandedValue],
    ) -> None:
        self._column = column
        self._subquery = subquery
        self._variables: dict[str, ExpandedValue] = {}  # of lambda functions

    def value(self, node: exp.Expr) -> ExpandedValue:
        if isinstance(node, exp.Alias | exp.Paren | exp.Ordered):
            return self.value(node.this)
        if isinstance(node, exp.Column):
            if not node.table and node.name.lower() in self._variables:
                return self._variables[node.name.lower()]
            return self._column(node)
        if isinstance(node, exp.Identifier):  # in a lambda function
            return self._variables.get(node.name.lower(), ExpandedValue(1, ASSUMED, ASSUMED))
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Query):
            return self._subquery(node)
        if isinstance(node, exp.And | exp.Or):
            return self._sum([self.value(each) for each in _flat(node)])
        if isinstance(node, exp.Lambda):
            return self._lambda(node)
        if isinstance(node, exp.Case) and node.this is not None:
            return self._case(node)
        return self._called(node)

    def _called(self, node: exp.Expr) -> ExpandedValue:
        name = _name(node)
        if name == "REDUCE" or name == "AGGREGATE":
            return self._reduced(node)
        values = [self.value(each) for each in _arguments(node)]
        size = 1 + _COPIES.get(name, 1) * sum(each.size for each in values)
        found = replace(self._sum(values), size=min(size, _MOST))
        lengths = [each.length for each in values] or [0]
        numbers = [each.number for each in values] or [ASSUMED]
        length, number, rows = max(lengths), max(numbers), found.rows
        if name in _SUMS:
            length = sum(lengths) + len(lengths) * lengths[0] * (name == "CONCAT_WS")
        elif name in _PRODUCTS:
            length = lengths[0] * (1 + lengths[-1])
        elif name in _LONGER:
            length *= _LONGER[name]
        elif name == "REPEAT" or name == "ARRAY_REPEAT":
            length = max(1, lengths[0]) * max(1, numbers[-1])
        elif name == "PAD":
            length = max(lengths[0], numbers[1] if len(numbers) > 1 else 0)
        elif name == "SPACE":
            length = numbers[0]
        elif name == "GENERATE_SERIES":
            length = _elements(values)
        elif name in _PER_ELEMENT:
            rows *= max(1, lengths[0])
        elif name == "STACK":
            rows *= max(1, numbers[0])
        if name in _FORMATS:  # such as %1000000d
            widths = [
                int(digits[:18])
                for text in node.find_all(exp.Literal)
                for digits in _DIGITS.findall(text.name)
            ]
            length += sum(widths)
        number = _number(node, numbers, number)
        return replace(found, length=min(length, _MOST), number=min(number, _MOST), rows=min(rows, _MOST))

    def _sum(self, values: list[ExpandedValue]) -> ExpandedValue:
        """Several expressions side by side."""
        size, rows = 1, 1
        for each in values:
            size, rows = size + each.size, min(rows * each.rows, _MOST)
        length = max((each.length for each in values), default=0)
        queries = tuple(query for each in values for query in each.queries)
        return ExpandedValue(min(size, _MOST), length, ASSUMED, rows, queries)

    def _case(self, node: exp.Case) -> ExpandedValue:
        """CASE a WHEN 1 ... WHEN 2 ...: each branch has a copy of `a`."""
        operand = self.value(node.this)
        branches = [
            self.value(each) for each in (*node.args["ifs"], node.args.get("default")) if each is not None
        ]
        found = self._sum([operand, *branches])
        return replace(found, size=min(found.size + operand.size * len(branches), _MOST))

    def _lambda(self, node: exp.Lambda, *given: ExpandedValue) -> ExpandedValue:
        before = self._variables
        values = [*given, *[ExpandedValue(1, ASSUMED, ASSUMED)] * len(node.expressions)]
        named = {each.name.lower(): value for each, value in zip(node.expressions, values, strict=False)}
        self._variables = {**before, **named}
        try:
            return self.value(node.this)
        finally:
            self._variables = before

    def _reduced(self, node: exp.Expr) -> ExpandedValue:
        """aggregate(array, first, merge): the value may grow with each element, or double."""
        array, first, *rest = _arguments(node)
        elements, start = self.value(array), self.value(first)
        merge = next((each for each in rest if isinstance(each, exp.Lambda)), None)
        found = self._sum([elements, start, *map(self.value, rest)])
        if merge is None:
            return found
        base = max(ASSUMED, start.length)
        once = self._lambda(merge, replace(start, length=base, rows=1)).length
        twice = self._lambda(merge, replace(start, length=2 * base, rows=1)).length
        if twice - once > base:
            length = base << min(60, elements.length)
        else:
            length = base + elements.length * max(0, once - base)
        return replace(found, length=min(length, _MOST))


def window_overlap(select: exp.Select) -> int:
    """In how many windows of a sliding window(ts, length, slide) a row is."""
    overlap = 1
    for node in select.find_all(exp.Anonymous):
        if node.name.upper() == "WINDOW" and len(node.expressions) > 2:
            length_us, slide_us = (_duration_us(each) for each in node.expressions[1:3])
            known = length_us is not None and slide_us is not None and slide_us > 0
            overlap = max(overlap, -(-(length_us or 0) // (slide_us or 1)) if known else _MOST)
    return max(1, min(overlap, _MOST))


def is_combined(node: exp.Expr) -> bool:
    """Whether an expression is computed from several rows."""
    return node.find(exp.AggFunc, exp.Window, exp.Query) is not None


def _duration_us(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Literal) and node.is_string:
        return duration_us(node.name.lower().removeprefix("interval "))
    return interval_us(node)


def _literal(node: exp.Literal) -> ExpandedValue:
    text = node.name
    try:
        number = int(min(abs(float(text)), float(_MOST)))
    except (ValueError, OverflowError):
        number = ASSUMED
    return ExpandedValue(1, len(text), number)


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    return node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return [each for each in node.iter_expressions() if not isinstance(each, exp.DataType)]


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of ANDs or ORs, which may have thousands."""
    found, pending = [], [node]
    while pending:
        each = pending.pop()
        if type(each) is type(node):
            pending += (each.args["this"], each.args["expression"])
        else:
            found.append(each)
    return found


def _elements(values: list[ExpandedValue]) -> int:
    """Of sequence(first, last), whose step is taken for 1."""
    return max((each.number for each in values[:2]), default=0) + 1


def _number(node: exp.Expr, numbers: list[int], greatest: int) -> int:
    if isinstance(node, exp.Add | exp.Sub):
        return sum(numbers)
    if isinstance(node, exp.Mul):
        return numbers[0] * numbers[-1]
    if isinstance(node, exp.Pow):
        return int(min(float(_MOST), float(max(numbers[0], 1)) ** min(numbers[-1], 60)))
    if isinstance(node, exp.BitwiseLeftShift):
        return numbers[0] << min(numbers[-1], 60)
    return greatest
