"""The FROM of a continuous query: one table, or a join of two or three on equal columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.base.names import close_match, one_of
from freshline.sql.columns import LATE_COLUMN, SLICE_COLUMN
from freshline.sql.slices import Slices

TABLES_MAX: Final = 3
_PLAIN_TABLE: Final = frozenset({"this", "alias"})
_PLAIN_JOIN: Final = frozenset({"this", "on", "using", "kind"})
_JOINED: Final = "Write it as `a JOIN b ON a.key = b.key`"


class UnknownColumn(InputError):  # noqa: N818  (it is what was found)
    """A column that none of the tables has, so no other reading of the SQL can be valid."""


@dataclass(frozen=True, slots=True)
class ReadableTable:
    """A table as a query sees it."""

    name: str
    columns: tuple[str, ...] | None = None  # in lower case; None: unknown
    timestamp: str | None = None
    slices: Slices | None = None
    rows: Fraction | None = None  # per second


@dataclass(frozen=True, slots=True)
class FromTable:
    """A table in a FROM."""

    alias: str  # in lower case
    table: ReadableTable


Column = tuple[int, str]  # the table's position in the FROM, and the column's name in lower case


class FromTables:
    """The tables of a FROM, and which table has a column. Raises InputError unless it is a join of tables."""

    def __init__(self, select: exp.Select, find: Callable[[str], ReadableTable]) -> None:
        self.all: list[FromTable] = []
        self.conditions: list[exp.Expr] = []  # of its joins; all must hold
        self._same: dict[Column, Column] = {}  # a forest: equal columns have one root
        self._shared: dict[str, int] = {}  # columns that joins share by USING, and their table
        joins = select.args.get("joins") or []
        if select.args.get("from_") is None:
            raise InputError("it reads no table", "Name a table of the warehouse in its FROM")
        if len(joins) >= TABLES_MAX:
            remedy = "Make a part of the join a table (`sql` under `tables`), and read that"
            raise InputError(f"it joins {len(joins) + 1} tables, and may join {TABLES_MAX}", remedy)
        self._add(select.args["from_"].this, find)
        for join in joins:
            _check_join(join)
            self._add(join.this, find)
            self._join(join)

    def owner(self, column: exp.Column) -> int | None:
        """The column's table; None if that is unknown. Raises InputError if no table has it."""
        first, *rest = (part.name.lower() for part in column.parts)
        place = next((at for at, each in enumerate(self.all) if each.alias == first), None)
        if rest and place is not None:
            self._check(place, rest[0])
            return place
        if first == SLICE_COLUMN:
            raise _own_column()
        if first in self._shared:
            return self._shared[first]
        known = [at for at, each in enumerate(self.all) if first in _columns(each.table)]
        unknown = [at for at, each in enumerate(self.all) if each.table.columns is None]
        if len(known) > 1:
            remedy = f"Write {one_of(f'{self.all[at].alias}.{first}' for at in known)}"
            raise InputError(f"`{first}` may be a column of several tables", remedy)
        if known or (len(unknown) == 1 and len(self.all) == 1):
            return (known or unknown)[0]
        if unknown:
            return None
        names = [name for each in self.all for name in _columns(each.table)]
        raise _no_column(first, " and ".join(f"`{each.table.name}`" for each in self.all), names)

    def owners(self, node: exp.Expr) -> set[int | None]:
        """The tables whose columns an expression has; parameters of a lambda do not count."""
        return {self.owner(column) for column in columns_of(node)}

    def is_shared(self, name: str) -> bool:
        """Whether tables share this column by USING."""
        return name in self._shared

    def is_key(self, node: exp.Expr) -> bool:
        """Whether the condition only says that columns of two tables are equal."""
        return self._equality(node) is not None

    def root(self, column: Column) -> Column:
        """One representative for all columns that are equal in every row of the join."""
        while column in self._same:
            column = self._same[column]
        return column

    def equate(self, node: exp.Expr) -> bool:
        """Adds a condition that every row meets. True if it joins the last table by an equality."""
        pair = self._equality(node)
        if pair is None:
            return False
        self._unite(*pair)
        return len(self.all) - 1 in (pair[0][0], pair[1][0])

    def _add(self, node: exp.Expr, find: Callable[[str], ReadableTable]) -> None:
        if isinstance(node, exp.Subquery | exp.Query):
            remedy = "Make it a table (`sql` under `tables`), and read that"
            raise InputError("it reads a query in its FROM", remedy)
        is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        more = {key for key, value in node.args.items() if value} - _PLAIN_TABLE
        alias = node.args.get("alias")
        if not is_table or more or (alias is not None and alias.args.get("columns")):
            remedy = "Name tables of the warehouse, each with an alias at most"
            raise InputError("its FROM has more than tables and joins", remedy)
        name = node.alias_or_name.lower()
        if any(each.alias == name for each in self.all):
            what = f"two tables of its FROM are called `{name}`"
            raise InputError(what, "Give one of them another name, as in `packets AS other`")
        self.all.append(FromTable(name, find(node.name)))

    def _join(self, join: exp.Join) -> None:
        for identifier in join.args.get("using") or ():
            self._use(identifier.name.lower())
        parts = [*conjuncts(join.args.get("on"))]
        keys = [self.equate(part) for part in parts]
        if not any(keys) and not join.args.get("using"):
            what = f"`{self.all[-1].alias}` is joined without an equality of columns"
            raise InputError(what, f"{_JOINED}; more conditions may follow")
        self.conditions += parts

    def _use(self, name: str) -> None:
        last = len(self.all) - 1
        self._check(last, name)
        if name not in self._shared:
            earlier = self.all[:last]
            having = [at for at, each in enumerate(earlier) if name in _columns(each.table)]
            maybe = [at for at, each in enumerate(earlier) if each.table.columns is None]
            owners = having or maybe
            if len(owners) != 1:
                what = f"the table of the column `{name}` in the last USING is not clear"
                raise InputError(what, f"{_JOINED} instead")
            self._shared[name] = owners[0]
        self._unite((self._shared[name], name), (last, name))

    def _equality(self, node: exp.Expr) -> tuple[Column, Column] | None:
        node = node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        sides = node.this.unnest(), node.expression.unnest()
        found: list[Column] = []
        for side in sides:
            if not isinstance(side, exp.Column):
                return None
            owner = self.owner(side)
            names = [part.name.lower() for part in side.parts]
            is_plain = len(names) == 1 or (len(names) == 2 and names[0] == self._alias(owner))
            if owner is None and len(self.all) > 1:
                remedy = f"Write its table too, such as `{self.all[0].alias}.{names[-1]}`"
                raise InputError(f"the table of the column `{names[-1]}` is not known", remedy)
            if owner is None or not is_plain:
                return None
            found.append((owner, names[-1]))
        return (found[0], found[1]) if found[0][0] != found[1][0] else None

    def _alias(self, place: int | None) -> str | None:
        return None if place is None else self.all[place].alias

    def _unite(self, one: Column, other: Column) -> None:
        ours, theirs = self.root(one), self.root(other)
        if ours != theirs:
            self._same[theirs] = ours

    def _check(self, place: int, name: str) -> None:
        table = self.all[place].table
        if name == SLICE_COLUMN:
            raise _own_column()
        if table.columns is not None and name != "*" and name not in _columns(table):
            raise _no_column(name, f"`{table.name}`", _columns(table))


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that are combined with AND."""
    pending = [] if condition is None else [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            yield node


def columns_of(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression. Inside a lambda a name may be a parameter instead."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            yield part
        elif not isinstance(part, exp.Lambda):
            pending += part.iter_expressions()


def _check_join(join: exp.Join) -> None:
    kind = f"{join.side} {join.kind}".strip().upper()
    if kind == "CROSS" or not (join.args.get("on") or join.args.get("using")):
        raise InputError("it joins tables without a condition", _JOINED)
    if kind not in ("", "INNER"):
        what = f"it has a {kind} JOIN: rows without a match may have one among those not read"
        raise InputError(what, f"{_JOINED}, or make it a table (`sql` under `tables`)")
    more = {key for key, value in join.args.items() if value} - _PLAIN_JOIN
    if more:
        raise InputError("it has a join of a kind that is not known here", _JOINED)


def _columns(table: ReadableTable) -> Sequence[str]:
    return () if table.columns is None else (*table.columns, LATE_COLUMN)


def _own_column() -> InputError:
    what = f"`{SLICE_COLUMN}` is a column that Freshline keeps for itself"
    return InputError(what, "Leave it out: which slices are read changes from answer to answer")


def _no_column(name: str, owner: str, names: Collection[str]) -> UnknownColumn:
    meant = close_match(name, names)
    remedy = f"Perhaps `{meant}` is meant" if meant else f"Name one of its columns: {', '.join(names)}"
    return UnknownColumn(f"there is no column `{name}` in {owner}", remedy)
