"""Which SQL a continuous query may have, and how it is decomposed.

A query reads one table, or joins two or three on equal columns. It selects rows (WHERE) and columns, or
groups rows with count, sum, avg, min and max. Such an answer can be combined from parts of the rows, and
estimated from some of them. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.base.names import cut
from freshline.sql.block import has_aggregate, is_aggregate
from freshline.sql.dialect import SPARK
from freshline.sql.formulas import check_formula, is_formula, without_filters
from freshline.sql.from_tables import FromTables, ReadableTable, columns_of, conjuncts
from freshline.sql.nondeterminism import unsteady
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream
from freshline.sql.query import parse_query
from freshline.sql.row_expressions import check_aggregate, check_row, is_known
from freshline.sql.time import Relation, own_time

# The default for a condition or join without a declared selectivity, as in the paper's experiments.
SELECTIVITY: Final = Fraction(1, 2)
_TABLE: Final = "make it a table (`sql` under `tables`) and read that"
# The clauses of a SELECT that are not allowed here, and the remedy for each.
_REFUSED: Final[dict[str, tuple[str, str]]] = {
    "with_": ("it has a WITH", f"Write one SELECT, or {_TABLE}"),
    "distinct": ("it has a DISTINCT", "Use GROUP BY"),
    "having": ("it has a HAVING: the value of a group is not known before all is read", "Remove it"),
    "qualify": ("it has a QUALIFY", f"Remove it, or {_TABLE}"),
    "windows": ("it has a WINDOW clause", f"Remove it, or {_TABLE}"),
    "order": (
        "it has an ORDER BY: an answer is put together from parts, and has no order",
        "Remove it; sort the answer where it is read",
    ),
    "limit": ("it has a LIMIT: which rows come first is not known before all is read", "Remove it"),
    "offset": ("it has an OFFSET: which rows come first is not known before all is read", "Remove it"),
    "laterals": ("it has a LATERAL VIEW", f"Remove it, or {_TABLE}"),
    "hint": ("it has a hint", "Remove it"),
}
_TAKEN: Final = frozenset({"expressions", "from_", "joins", "where", "group"})
_PLAIN_STAR: Final = frozenset({"except_"})


@dataclass(frozen=True, slots=True)
class QuerySql:
    """The SQL of a query, analysed."""

    select: exp.Select
    tables: FromTables
    keys: tuple[exp.Expr, ...]  # of GROUP BY, with names and numbers resolved to columns of the answer
    is_grouped: bool  # whether it has aggregates or groups
    own: tuple[bool, ...]  # for each table of the FROM: whether some conditions are on its columns alone
    has_rest: bool  # whether other conditions exist, besides join keys

    def operators(self, selectivity: Fraction | None) -> Operator:
        """Its operator tree: conditions as close to their tables as possible, then joins from left to right.

        A declared `selectivity` of the query applies to its operator if there is only one.
        """
        joins = len(self.tables.all) - 1
        is_one = joins + sum(self.own) + self.has_rest == 1
        each = selectivity if selectivity is not None and is_one else SELECTIVITY
        tree: Operator | None = None
        for at, relation in enumerate(self.tables.all):
            leaf: Operator = Stream(relation.table.name)
            if self.own[at]:
                leaf = Select(each, leaf)
            tree = leaf if tree is None else Join(each, tree, leaf)
        assert tree is not None, "a FROM has a table"
        if self.has_rest:
            tree = Select(each, tree)
        if self.is_grouped:
            return Aggregate(tree)
        return tree if all(part.is_star for part in self.select.expressions) else Project(tree)

    def in_slices(self) -> frozenset[int]:
        """The positions of the tables in the FROM that are read in slices; the others are read whole.

        Tables whose slice columns the join makes equal can be read together, slice by slice, if none has
        outliers: those are in no slice, but their join partners may be. The choice is the group with the most
        rows per second, then the one with the most tables, then the first.
        """
        groups: dict[object, list[int]] = {}
        for at, relation in enumerate(self.tables.all):
            slices = relation.table.slices
            if slices is not None:
                is_alone = slices.by is None or slices.outliers is not None
                by = ("alone", at) if is_alone else self.tables.root((at, str(slices.by).lower()))
                groups.setdefault(by, []).append(at)
        if not groups:
            raise self._without_slices()
        best: list[int] = max(groups.values(), key=self._worth)
        return frozenset(best)

    def _worth(self, group: list[int]) -> tuple[Fraction, int, int]:
        rows = [self.tables.all[at].table.rows or Fraction(0) for at in group]
        return sum(rows, Fraction(0)), len(group), -group[0]

    def _without_slices(self) -> InputError:
        names = [relation.table.name for relation in self.tables.all]
        if len(names) == 1:
            what = f"it reads `{names[0]}`, which is not kept in slices"
            return InputError(what, f"Add `slices: {{}}` to the table `{names[0]}`")
        remedy = f"Add `slices: {{}}` to the largest, such as `{names[0]}`, or `slices: {{by: KEY}}` to all "
        return InputError("none of the tables that it reads is kept in slices", remedy + "that KEY joins")


def read_query(sql: str, find: Callable[[str], ReadableTable]) -> QuerySql:
    """Analyses the SQL of a query over tables that `find` knows. Raises InputError if it is not allowed."""
    return understood(_one_select(parse_query(sql)), find)


def understood(select: exp.Select, find: Callable[[str], ReadableTable], wider: bool = False) -> QuerySql:
    """Analyses a parsed SELECT. `wider` allows the aggregates of a request."""
    _check_clauses(select)
    without_filters(select)
    tables = FromTables(select, find)
    _check_steady(select, tables)
    where = select.args.get("where")
    conditions = [*tables.conditions, *conjuncts(where.this if where else None)]
    for condition in conditions:
        check_row(condition, "a condition")
        tables.equate(condition)
    keys = tuple(_keys(select, tables))
    is_grouped = bool(select.args.get("group")) or any(map(has_aggregate, select.expressions))
    if is_grouped:
        _check_groups(select, keys, tables, wider)
    else:
        _check_columns(select, tables)
    own, has_rest = _divided(conditions, tables)
    return QuerySql(select, tables, keys, is_grouped, own, has_rest)


def answer_columns(query: QuerySql) -> tuple[list[str], list[str]]:
    """The known columns of the answer, and those of them that are estimated.

    Raises InputError if a column has no name that a table could use.
    """
    columns: list[str] = []
    estimated: list[str] = []
    for part in query.select.expressions:
        if part.is_star:
            whose = part.args.get("table") if isinstance(part, exp.Column) else None
            columns += [
                name
                for each in query.tables.all
                if whose is None or whose.name.lower() == each.alias
                for name in each.table.columns or ()
            ]
            continue
        if not isinstance(part, exp.Alias | exp.Column):
            what = f"its column `{shown(part)}` has no name, which a table of answers needs"
            raise InputError(what, "Give it one with AS")
        columns.append(part.alias_or_name)
        if has_aggregate(part):
            estimated.append(part.alias_or_name)
    return columns, estimated


def shown(node: exp.Expr) -> str:
    """An expression as a message quotes it."""
    return cut(str(node.sql(SPARK)))


def _one_select(query: exp.Query) -> exp.Select:
    if isinstance(query, exp.SetOperation):
        what = f"it is a {query.key.upper()} of queries"
        raise InputError(what, "Write a query for each, or make it a table (`sql` under `tables`)")
    if not isinstance(query, exp.Select):
        raise InputError("it is not a plain SELECT", "Write one SELECT, without brackets around it")
    return query


def _check_clauses(select: exp.Select) -> None:
    for clause, value in select.args.items():
        if not value or clause in _TAKEN:
            continue
        if clause in _REFUSED:
            raise InputError(*_REFUSED[clause])
        raise InputError(
            "it has more than SELECT, FROM, JOIN, WHERE and GROUP BY", "Write it with these alone"
        )


def _check_steady(select: exp.Select, tables: FromTables) -> None:
    relations = [Relation(each.table.columns, own_time(each.table.timestamp)) for each in tables.all]
    for name in unsteady(select, relations):
        what = f"`{name}` gives something else each time it is asked"
        raise InputError(what, "Use only what the rows say, such as their timestamps")


def _keys(select: exp.Select, tables: FromTables) -> Iterator[exp.Expr]:
    """The keys of GROUP BY, with numbers and names of answer columns resolved."""
    group = select.args.get("group")
    if group is None:
        return
    if {key for key, value in group.args.items() if value} - {"expressions"}:
        raise InputError("its GROUP BY has more than columns", "Name what it groups by, one by one")
    parts = select.expressions
    for key in group.expressions:
        if isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple):
            raise InputError("its GROUP BY has more than columns", "Name what it groups by, one by one")
        if isinstance(key, exp.Literal):
            place = int(key.name) if key.is_int and len(key.name) < 6 else 0
            if not 0 < place <= len(parts) or parts[place - 1].is_star:
                raise InputError(f"it groups by {key.name}, which is no column", "Name what it groups by")
            resolved = parts[place - 1].unalias()
        else:
            resolved = _meant(key, parts, tables)
        check_row(resolved, "GROUP BY")
        tables.owners(resolved)
        yield resolved


def _meant(key: exp.Expr, parts: list[exp.Expr], tables: FromTables) -> exp.Expr:
    """Resolves a name: a column of the tables comes before a column of the answer."""
    if not isinstance(key, exp.Column) or key.table:
        return key
    named = [part for part in parts if isinstance(part, exp.Alias) and part.alias.lower() == key.name.lower()]
    if len(named) != 1:
        return key
    try:
        owner = tables.owner(key)
    except InputError:
        return named[0].unalias()
    if owner is None or tables.all[owner].table.columns is None:
        if _is_column(named[0].unalias(), key.name):
            return key
        what = f"`{key.name}` in its GROUP BY may be a column of a table or of the answer"
        raise InputError(what, "Give the column of the answer another name, or group by what it is")
    return key


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == name.lower()


def _check_groups(select: exp.Select, keys: tuple[exp.Expr, ...], tables: FromTables, wider: bool) -> None:
    """Checks that every column of the answer is an aggregate, a formula of aggregates, or a key."""
    normal_keys = [normal(key, tables) for key in keys]
    names: list[str] = []
    for part in select.expressions:
        if part.is_star:
            raise InputError("it has a `*` beside groups", "Name the columns of the answer")
        node = part.unalias().unnest()
        is_aggregated = is_known(node, wider) or is_formula(node)
        if not is_aggregated and has_aggregate(node):
            raise _no_aggregate(node)
        if is_known(node, wider):
            check_aggregate(node, wider)
        elif is_aggregated:
            check_formula(node)
        else:
            check_row(node, "SELECT")
        tables.owners(node)
        if not is_aggregated and normal(node, tables) not in normal_keys:
            what = f"`{shown(node)}` is neither what it groups by nor count, sum, avg, min or max"
            raise InputError(what, "Add it to GROUP BY, or leave it out")
        names.append(_name(part))
    if not wider:
        _check_names(names)


def _no_aggregate(node: exp.Expr) -> InputError:
    """The error for an aggregate inside something that is not a formula, or for an unsupported one."""
    for part in node.walk():
        if isinstance(part, exp.Window | exp.Query):
            check_row(part, "SELECT")
        elif isinstance(part, exp.Filter) or is_aggregate(part):
            check_aggregate(part)
    what = f"`{shown(node)}` is computed from aggregates"
    remedy = "Compute with + - * / of count, sum and avg, or select each aggregate as a column of its own"
    return InputError(what, remedy)


def _check_columns(select: exp.Select, tables: FromTables) -> None:
    names: list[str] | None = []
    for part in select.expressions:
        if part.is_star:
            columns = _star(part, tables)
            names = None if names is None or columns is None else names + columns
            continue
        check_row(part, "SELECT")
        tables.owners(part)
        if names is not None:
            names.append(_name(part))
    if names is not None:
        _check_names(names)


def _name(part: exp.Expr) -> str:
    """The name of a column of the answer."""
    named = part.alias_or_name if isinstance(part, exp.Alias | exp.Column) else shown(part)
    return named.lower()


def _star(part: exp.Expr, tables: FromTables) -> list[str] | None:
    """The columns that a `*` stands for; None if they are unknown."""
    star = part.this if isinstance(part, exp.Column) else part
    if {key for key, value in star.args.items() if value} - _PLAIN_STAR:
        raise InputError("it has a `*` with more than EXCEPT", "Name the columns of the answer")
    left_out = {column.name.lower() for column in star.args.get("except_") or ()}
    owner = part.table.lower() if isinstance(part, exp.Column) else None
    meant = [each for each in tables.all if owner in (None, each.alias)]
    if not meant:
        raise InputError(f"there is no table `{owner}` in its FROM", "Write `*`, or the name of one")
    columns: list[str] = []
    for each in meant:
        if each.table.columns is None:
            return None
        columns += [name for name in each.table.columns if name not in left_out]
    # A column shared by USING appears once.
    shared = [name for name in dict.fromkeys(columns) if owner is None and tables.is_shared(name)]
    return shared + [name for name in columns if name not in shared]


def _check_names(names: list[str]) -> None:
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        what = f"two columns of the answer are called `{twice}`"
        raise InputError(what, "Give one of them another name with AS, or name columns instead of `*`")


def _divided(conditions: list[exp.Expr], tables: FromTables) -> tuple[tuple[bool, ...], bool]:
    """Which tables have conditions on their columns alone, and whether there are others besides join keys."""
    own, has_rest = [False] * len(tables.all), False
    for condition in conditions:
        owners = tables.owners(condition)
        if len(owners) == 1 and None not in owners:
            own[owners.pop() or 0] = True
        elif not tables.is_key(condition):
            has_rest = True
    return tuple(own), has_rest


def normal(node: exp.Expr, tables: FromTables) -> exp.Expr:
    """One form for expressions that differ only in case, brackets or table prefixes."""
    copy = exp.Paren(this=node.copy())
    for column in [*columns_of(copy)]:
        owner = tables.owner(column)
        names = [part.name.lower() for part in column.parts]
        if owner is not None and names[0] == tables.all[owner].alias and len(names) > 1:
            names = names[1:]
        whose = "" if owner is None else f"{owner}:"
        column.replace(exp.Column(this=exp.to_identifier(f"{whose}{'.'.join(names)}", quoted=True)))
    for inner in [*copy.this.find_all(exp.Paren)]:
        inner.replace(inner.this)
    plain: exp.Expr = copy.this.unnest()
    return plain
