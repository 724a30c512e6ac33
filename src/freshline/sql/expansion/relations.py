"""The relations of a statement, with what they expand to, and the limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.sql.expansion.values import ASSUMED, ExpandedValue, most

# Spark analyses a statement at these limits within a few seconds, and with less than 300 MB
# (`benchmarks/growing_statements.py`). Each limit is far beyond a statement that people write.
RELATIONS_MAX: Final = 300
# Spark's rules recurse over the plan: with Java's default stack they fail at some hundred levels.
DEPTH_MAX: Final = 60
EXPRESSIONS_MAX: Final = 20_000
COLUMNS_MAX: Final = 2_000
# For each row that is read; a job with more takes minutes and fills the disk before it ends.
ROWS_MAX: Final = 1_000_000
# Of one value. A task holds thousands of rows at a time, and Spark's memory is some gigabytes.
CHARACTERS_MAX: Final = 1_000_000
UNKNOWN_COLUMNS: Final = 100  # of a table whose columns are not known
_SPLIT: Final = "Split it into several statements, or make a part of it a table (`sql` under `tables`)"


class StatementTooLarge(InputError):  # noqa: N818  (an event, not a fault)
    """A statement that expands to more than Spark can analyse or run beside other work."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The counts of a statement."""

    relations: int  # tables and SELECTs, each as often as Spark reads it
    depth: int  # of nested SELECTs and joins
    expressions: int
    columns: int  # of the widest SELECT
    rows: int  # the most that are made of one row, at any point
    characters: int  # of the longest value, or the elements of the longest array

    def beyond(self) -> tuple[str, int, int] | None:
        """What is beyond its limit: its name, the count and the limit; None if nothing is."""
        limits = (
            ("relations", self.relations, RELATIONS_MAX),
            ("nested relations", self.depth, DEPTH_MAX),
            ("expressions", self.expressions, EXPRESSIONS_MAX),
            ("columns", self.columns, COLUMNS_MAX),
            ("rows for each row that it reads", self.rows, ROWS_MAX),
            ("characters in one value", self.characters, CHARACTERS_MAX),
        )
        return next((limit for limit in limits if limit[1] > limit[2]), None)


@dataclass(frozen=True, slots=True)
class ExpandedRelation:
    """A table, or the answer of a query."""

    counts: Expansion
    columns: tuple[tuple[str, ExpandedValue], ...]  # by name, in order
    branches: int = 1  # of unions: a condition on the rows is repeated in each
    rows: int = 1  # in the end, made of one row that is read

    def named(self, name: str) -> list[ExpandedValue]:
        return [value for column, value in self.columns if column == name]


NOTHING: Final = Expansion(0, 0, 0, 0, 1, 0)


def made(relation: ExpandedRelation, rows: int) -> ExpandedRelation:
    """The relation with so many rows made of one."""
    counts = replace(relation.counts, rows=max(relation.counts.rows, rows))
    return replace(relation, counts=counts, rows=rows)


def checked(relation: ExpandedRelation) -> ExpandedRelation:
    beyond = relation.counts.beyond()
    if beyond is not None:
        raise too_large(*beyond)
    return relation


def too_large(what: str, count: int, limit: int) -> StatementTooLarge:
    shown = f"{count:,}" if count < 10**15 else f"more than {10**15:,}"
    return StatementTooLarge(f"the SQL expands to {shown} {what}, and may have {limit:,}", _SPLIT)


def together(counts: Iterable[Expansion]) -> Expansion:
    """The counts of several relations side by side; of rows and depth, the most."""
    listed = [*counts]
    return Expansion(
        sum(each.relations for each in listed),
        max(each.depth for each in listed),
        sum(each.expressions for each in listed),
        max(each.columns for each in listed),
        max(each.rows for each in listed),
        max(each.characters for each in listed),
    )


def with_value(counts: Expansion, value: ExpandedValue, times: int) -> Expansion:
    """The counts with an expression that is there so many times."""
    for query in value.queries:  # each becomes a join
        counts = replace(
            together((counts, query)), rows=counts.rows, depth=max(counts.depth, query.depth) + 1
        )
    return replace(
        counts,
        expressions=counts.expressions + value.size * times,
        characters=max(counts.characters, value.length),
        rows=counts.rows * value.rows,
    )


def renamed(relation: ExpandedRelation, source: exp.Expr) -> ExpandedRelation:
    alias = source.args.get("alias")
    names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
    if not names:
        return relation
    values = [value for _, value in relation.columns]
    rest = most(values) if values else ExpandedValue(1, ASSUMED, ASSUMED)
    columns = tuple((name, values[at] if at < len(values) else rest) for at, name in enumerate(names))
    return replace(relation, columns=columns)


def pivoted(relation: ExpandedRelation, pivot: exp.Expr) -> ExpandedRelation:
    size = sum(1 for _ in pivot.walk())
    counts = relation.counts
    named = sum(len(field.expressions) for field in pivot.args.get("fields") or ())
    value = most((ExpandedValue(1, ASSUMED, ASSUMED), *(value for _, value in relation.columns)))
    is_turned = bool(pivot.args.get("unpivot"))  # columns become rows
    size *= 1 if is_turned else max(1, named)
    columns = relation.columns + (("", value),) * min(named * max(1, len(pivot.expressions)), COLUMNS_MAX)
    counts = replace(
        counts,
        relations=counts.relations + 1,
        depth=counts.depth + 2,
        expressions=counts.expressions + size,
        columns=max(counts.columns, len(columns)),
    )
    rows = relation.rows * (max(1, named) if is_turned else 1)
    return checked(made(replace(relation, counts=counts, columns=columns), rows))
