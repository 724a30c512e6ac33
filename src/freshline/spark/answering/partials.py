"""Rewrites a continuous query so that it can be answered in parts.

A part gives the groups of its rows by slice, with columns that can be added up later: a sum and a count for
`avg`, and squares for the scatter of sums. Without groups a part gives its rows. Formulas over aggregates are
computed after the merge, so their aggregates are columns of a part too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    NumericType,
    StringType,
    StructType,
    VariantType,
)
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from freshline.base.errors import InputError
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.dialect import SPARK
from freshline.sql.formulas import Kind, aggregates_in, is_formula, kind_of
from freshline.sql.query_sql import QuerySql
from freshline.sql.slices import NO_SLICE

SLICE: Final = "_s"  # a part's column with the slice
_INNER: Final = "_rows"
_INPUT: Final = "_input_of_formula_"
_KINDS: Final[dict[type[exp.Expr], str]] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
SCATTERS: Final = frozenset({"var_samp", "var_pop", "stddev_samp", "stddev_pop"})


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer: a key, a formula or an aggregate with numbered partial columns."""

    name: str
    kind: str  # "key", "formula", or one of the aggregates below
    number: int
    formula: exp.Expr | None = None  # over the numbers of other outputs, as columns

    @property
    def total(self) -> str:
        """The partial column with the sum, the least or the greatest value."""
        return f"_t{self.number}"

    @property
    def count(self) -> str:
        """The partial column with the number of values, without nulls."""
        return f"_c{self.number}"

    @property
    def squares(self) -> str:
        """The partial column with the sum of squares; for a variance, of the distances from the average."""
        return f"_q{self.number}"


@dataclass(frozen=True, slots=True)
class Partials:
    """The SQL of a part, over views of the tables in its FROM, and the columns to merge from the results."""

    sql: str
    outputs: tuple[OutputColumn, ...]  # empty for a query without groups
    keys: tuple[str, ...]  # partial columns
    whole: tuple[str, ...]  # the slices' keys: all rows of such a group are in one slice
    inputs: int = 0  # how many of the last outputs only formulas use

    @property
    def shown(self) -> tuple[OutputColumn, ...]:
        """The columns of the answer."""
        return self.outputs[: len(self.outputs) - self.inputs]


def view(place: int) -> str:
    """The name in a part's SQL of the table at that place of the FROM."""
    return f"_side_{place}"


def as_written(select: exp.Query) -> str:
    return select.sql(SPARK, comments=False, unsupported_level=ErrorLevel.RAISE)


def with_inputs(sql: QuerySql) -> QuerySql:
    """The query with the aggregates of its formulas as additional columns at the end."""
    select = sql.select.copy()
    there = [part.unalias().unnest() for part in select.expressions]
    for part in [*there]:
        for aggregate in aggregates_in(part) if is_formula(part) else ():
            if aggregate not in there:
                there.append(aggregate)
                select.append("expressions", exp.alias_(aggregate.copy(), f"{_INPUT}{len(there)}"))
    return replace(sql, select=select)


def partials_of(sql: QuerySql, sliced: Collection[int], types: Mapping[str, DataType]) -> Partials:
    """Rewrites a query; `sliced` are the places of the FROM whose tables are read in slices.

    `types` are those of the answer's columns, in order, and of those that `with_inputs` adds.
    """
    select = sql.select.copy()
    _rename(select)
    if not sql.is_grouped:
        return Partials(as_written(select), (), (), ())
    return _Grouped(sql, sliced, types).partials(select)


class _Grouped:
    """The rewrite of a query with groups, or with aggregates of all rows."""

    def __init__(self, sql: QuerySql, sliced: Collection[int], types: Mapping[str, DataType]) -> None:
        self._sql = sql
        self._sliced = sliced
        self._types = types
        self._keys = list(sql.keys)  # then the answer's keys that are written differently
        self._arguments: list[exp.Expr] = []
        self._partial: list[str] = []
        self._parts = [part.unalias().unnest() for part in sql.select.expressions]

    def partials(self, select: exp.Select) -> Partials:
        outputs = tuple(
            self._output(name, kind, part)
            for part, (name, kind) in zip(self._parts, self._types.items(), strict=True)
        )
        inner = [
            *(exp.alias_(key.copy(), f"_k{at}") for at, key in enumerate(self._keys)),
            exp.alias_(self._slice(), SLICE),
            *(exp.alias_(each.copy(), f"_a{at}") for at, each in enumerate(self._arguments)),
        ]
        select.set("expressions", inner)
        select.set("group", None)
        keys = tuple(f"_k{at}" for at in range(len(self._keys)))
        grouped = ", ".join([*keys, SLICE])
        columns = ", ".join([grouped, *self._partial])
        text = f"SELECT {columns} FROM ({as_written(select)}) AS {_INNER} GROUP BY {grouped}"
        inputs = sum(output.name.startswith(_INPUT) for output in outputs)
        return Partials(text, outputs, keys, tuple(self._whole()), inputs)

    def _slice(self) -> exp.Expr:
        """The expression of a row's slice; a row of another writer has none."""
        alias = exp.to_identifier(self._sql.tables.all[min(self._sliced)].alias, quoted=True)
        none = exp.cast(exp.Literal.number(NO_SLICE), "smallint")
        return exp.Coalesce(this=exp.column(SLICE_COLUMN, alias), expressions=[none])

    def _output(self, name: str, kind: DataType, node: exp.Expr) -> OutputColumn:
        if is_formula(node):
            return OutputColumn(name, "formula", len(self._arguments), self._formula(name, kind, node))
        if type(node) not in _KINDS:
            _check_compared(name, kind, nested=True)
            if node not in self._keys:
                self._keys.append(node)
            return OutputColumn(name, "key", self._keys.index(node))
        output = OutputColumn(name, _KINDS[type(node)], len(self._arguments))
        argument = node.this
        if isinstance(argument, exp.Star):
            argument = exp.Literal.number(1)
        elif isinstance(argument, exp.Distinct):
            output, argument = OutputColumn(name, "distinct", output.number), argument.expressions[0]
        self._arguments.append(argument)
        value = f"_a{output.number}"
        self._partial.append(f"count({value}) AS {output.count}")
        if output.kind in ("min", "max"):
            _check_compared(name, kind, nested=False)
            self._partial.append(f"{output.kind}({value}) AS {output.total}")
        elif output.kind == "distinct":
            self._partial.append(f"count(DISTINCT {value}) AS {output.total}")
        elif output.kind in SCATTERS:
            # Spark adds up distances from the average: sums of squares of large values would lose all digits.
            self._partial.append(f"avg(CAST({value} AS double)) AS {output.total}")
            squares = f"var_pop(CAST({value} AS double)) * count({value})"
            self._partial.append(f"{squares} AS {output.squares}")
        elif output.kind != "count":
            self._added(output, kind, value)
        return output

    def _formula(self, name: str, kind: DataType, node: exp.Expr) -> exp.Expr:
        """A formula over the numbers of its aggregates. Raises InputError if Spark computes it otherwise."""
        aggregates, types = aggregates_in(node), [*self._types.values()]
        places = [self._parts.index(each) for each in aggregates]
        kinds = [_computed_with(types[place]) for place in places]
        if _computed_with(kind) != kind_of(node, aggregates, kinds):
            raise InputError(
                f"`{name}` is {kind.simpleString()}, which Freshline cannot compute in parts", "Use doubles"
            )

        def numbered(part: exp.Expr) -> exp.Expr:
            return exp.column(str(places[aggregates.index(part)])) if part in aggregates else part

        return node.copy().transform(numbered)

    def _added(self, output: OutputColumn, kind: DataType, value: str) -> None:
        """Adds the partial columns of a sum or an average: the sum, and the squares for its scatter."""
        if not isinstance(kind, NumericType):
            what = f"`{output.name}` is {kind.simpleString()}, which a part of the rows cannot estimate"
            raise InputError(what, f"Use {output.kind} of numbers")
        # In Spark too an average of integers is one of doubles.
        is_double = output.kind == "avg" and not isinstance(kind, DecimalType)
        added = f"CAST({value} AS double)" if is_double else value
        self._partial.append(f"sum({added}) AS {output.total}")
        squared = f"CAST({value} AS double)"
        self._partial.append(f"sum({squared} * {squared}) AS {output.squares}")

    def _whole(self) -> list[str]:
        """The keys that a table in slices is sliced by."""
        tables = self._sql.tables
        dealt_by = {
            (place, slices.by.lower())
            for place in self._sliced
            if (slices := tables.all[place].table.slices) is not None and slices.by is not None
        }
        found = []
        for at, key in enumerate(self._keys):
            if isinstance(key, exp.Column):
                owner, names = tables.owner(key), [part.name.lower() for part in key.parts]
                is_plain = len(names) == 1 or (len(names) == 2 and owner is not None)
                if is_plain and owner is not None and (owner, names[-1]) in dealt_by:
                    found.append(f"_k{at}")
        return found


def _computed_with(kind: DataType) -> Kind:
    if isinstance(kind, LongType):
        return "whole"
    return "double" if isinstance(kind, DoubleType) else "decimal"


def _check_compared(name: str, kind: DataType, nested: bool) -> None:
    """Raises InputError for types that Spark compares otherwise: collated strings and nested values."""
    is_collated = isinstance(kind, StringType) and kind != StringType()
    if is_collated or (not nested and isinstance(kind, ArrayType | MapType | StructType | VariantType)):
        what = f"`{name}` is {kind.simpleString()}, which cannot be compared in parts of the rows"
        raise InputError(what, "Use numbers, plain texts or times")


def _rename(select: exp.Select) -> None:
    """Makes the query read the views, under the aliases that it has for its tables."""
    nodes = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    for place, node in enumerate(nodes):
        alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))
        node.replace(exp.Table(this=exp.to_identifier(view(place)), alias=alias))
