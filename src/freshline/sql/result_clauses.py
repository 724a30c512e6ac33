"""The clauses of a request that apply to the rows of its answer: HAVING, ORDER BY, LIMIT and OFFSET.

A group is complete only when everything is read, so these clauses apply to the estimates of an answer. A
clause outside this small grammar raises InputError, and the request is answered whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.sql.block import has_aggregate
from freshline.sql.formulas import check_formula, is_formula
from freshline.sql.from_tables import columns_of, conjuncts
from freshline.sql.query_sql import QuerySql, normal
from freshline.sql.row_expressions import check_aggregate, check_row, is_known

COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_WHOLE: Final = "It is answered whole"


@dataclass(frozen=True, slots=True)
class SortKey:
    output: int
    is_descending: bool
    is_null_first: bool


@dataclass(frozen=True, slots=True)
class ResultClauses:
    """The clauses, with columns of the answer by number; the columns that are shown come first."""

    shown: int
    having: exp.Expr | None = None  # comparisons of columns _o0, _o1, ... with numbers
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def in_words(self) -> str | None:
        """The names of the clauses that are present; None without any."""
        named = [("HAVING", self.having is not None), ("ORDER BY", bool(self.order))]
        named += [("LIMIT", self.limit is not None), ("OFFSET", self.offset > 0)]
        return ", ".join(name for name, is_there in named if is_there) or None

    def compared(self) -> set[int]:
        """The columns that HAVING compares with numbers."""
        columns = () if self.having is None else columns_of(self.having)
        return {number_of(column) for column in columns}


def output(number: int) -> str:
    """The internal name of a column of the answer."""
    return f"_o{number}"


def number_of(column: exp.Column) -> int:
    return int(column.name.removeprefix("_o"))


def split(
    sql: QuerySql,
    having: exp.Having | None = None,
    order: exp.Order | None = None,
    limit: exp.Limit | None = None,
    offset: exp.Offset | None = None,
) -> tuple[list[exp.Expr], ResultClauses]:
    """The columns that the answer needs, those it shows first, and the clauses over them.

    A condition on keys alone selects rows, so it becomes part of the query's WHERE.
    """
    parts = _Parts(sql)
    kept = [part for each in conjuncts(having.this if having else None) if (part := parts.condition(each))]
    keys = tuple(parts.sort_key(each) for each in (order.expressions if order else ()))
    return parts.all, ResultClauses(
        len(sql.select.expressions),
        exp.and_(*kept) if kept else None,
        keys,
        None if limit is None else _whole_number(limit),
        0 if offset is None else _whole_number(offset),
    )


def _whole_number(clause: exp.Limit | exp.Offset) -> int:
    number = clause.expression
    more = {key for key, value in clause.args.items() if value} - {"expression"}
    if more or not isinstance(number, exp.Literal) or not number.is_int:
        raise InputError("it has a LIMIT that is no number", _WHOLE)
    return int(number.name)


class _Parts:
    """The columns of an answer; a clause may add more."""

    def __init__(self, sql: QuerySql) -> None:
        self._sql = sql
        self.all = [part.unalias().unnest() for part in sql.select.expressions]
        self._aliases = [
            part.alias.lower() if isinstance(part, exp.Alias) else None for part in sql.select.expressions
        ]
        self._normal = [normal(part, sql.tables) for part in self.all]
        self._keys = [normal(key, sql.tables) for key in sql.keys]

    def condition(self, node: exp.Expr) -> exp.Expr | None:
        """A condition of HAVING over the answer's columns; None if it became one on rows."""
        columns = [*columns_of(node)]
        if not has_aggregate(node) and not any(self._named(column) is not None for column in columns):
            if not self._keys:
                raise InputError("it has a HAVING without aggregates or groups", _WHOLE)
            check_row(node, "HAVING")
            self._sql.tables.owners(node)
            self._sql.select.where(node.copy(), copy=False)
            return None
        return self._compared(node)

    def sort_key(self, ordered: exp.Expr) -> SortKey:
        assert isinstance(ordered, exp.Ordered)
        if ordered.args.get("with_fill"):
            raise InputError("it has an ORDER BY of a kind that is not known here", _WHOLE)
        node = ordered.this
        if isinstance(node, exp.Literal):
            place = int(node.name) if node.is_int and len(node.name) < 6 else 0
            if not 0 < place <= len(self._aliases):
                raise InputError(f"it orders by {node.name}, which is no column", _WHOLE)
            number = place - 1
        else:
            number = self._output(node)
        return SortKey(number, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))

    def _compared(self, node: exp.Expr) -> exp.Expr:
        """The condition with aggregates as answer columns. Raises InputError if it is not a comparison."""
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or):
            sides = self._compared(node.this), self._compared(node.expression)
            return type(node)(this=exp.paren(sides[0]), expression=exp.paren(sides[1]))
        if isinstance(node, exp.Not):
            return exp.Not(this=exp.paren(self._compared(node.this)))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return exp.Is(this=self._operand(node.this), expression=exp.null())
        if isinstance(node, COMPARISONS):
            return type(node)(this=self._operand(node.this), expression=self._operand(node.expression))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            low, high = self._operand(node.args["low"]), self._operand(node.args["high"])
            return exp.Between(this=self._operand(node.this), low=low, high=high)
        raise InputError("it has a HAVING that is no comparison of aggregates and numbers", _WHOLE)

    def _operand(self, node: exp.Expr) -> exp.Expr:
        node = node.unnest()
        number = node.this.unnest() if isinstance(node, exp.Neg) else node
        if isinstance(number, exp.Literal):
            if number.is_string:
                raise InputError("it compares an aggregate with a text", _WHOLE)
            return node.copy()
        return exp.column(output(self._output(node)))

    def _output(self, node: exp.Expr) -> int:
        """The number of the answer's column that an expression equals; adds a column if there is none."""
        node = node.unnest()
        if isinstance(node, exp.Column) and (named := self._named(node)) is not None:
            return named
        is_aggregated = is_known(node, wider=True) or is_formula(node)
        if is_known(node, wider=True):
            check_aggregate(node, wider=True)
        elif is_aggregated:
            check_formula(node)
        else:
            check_row(node, "ORDER BY")
        self._sql.tables.owners(node)
        plain = normal(node, self._sql.tables)
        if plain in self._normal:
            return self._normal.index(plain)
        if not is_aggregated and plain not in self._keys:
            raise InputError("it orders or compares by what it does not group by", _WHOLE)
        self.all.append(node)
        self._normal.append(plain)
        return len(self.all) - 1

    def _named(self, column: exp.Column) -> int | None:
        """The answer's column that a name means. Raises InputError if the name is ambiguous."""
        name = column.name.lower()
        if column.table or name not in self._aliases:
            return None
        if self._aliases.count(name) > 1:
            raise InputError(f"two columns of the answer are called `{name}`", _WHOLE)
        number = self._aliases.index(name)
        if any(name in (each.table.columns or ()) for each in self._sql.tables.all):
            if self._normal[number] == normal(column, self._sql.tables):
                return None if self._normal[number] in self._keys else number
            raise InputError(f"`{name}` may be a column of a table or of the answer", _WHOLE)
        return number
