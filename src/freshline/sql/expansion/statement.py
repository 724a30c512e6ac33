"""How large a statement becomes when Spark analyses and runs it, counted on the parsed text.

A short text can describe a huge query. Spark replaces a common table expression by its query wherever a FROM
names it, so that 24 of them, each of which joins the one before with itself, read 16 million tables. In the
same way it replaces a column by the expression that it stands for. Its analysis has no limit of its own and
cannot be stopped, so `check_expansion` refuses such a statement before Spark sees it.

A count is an upper bound for what the text shows. Rows of tables are not counted: to read them takes a job,
which can be cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from sqlglot import exp

from freshline.sql.expansion.relations import (
    COLUMNS_MAX,
    NOTHING,
    UNKNOWN_COLUMNS,
    ExpandedRelation,
    Expansion,
    StatementTooLarge,
    checked,
    made,
    pivoted,
    renamed,
    together,
    too_large,
    with_value,
)
from freshline.sql.expansion.values import (
    ASSUMED,
    ExpandedValue,
    ValueCounter,
    is_combined,
    most,
    window_overlap,
)


def check_expansion(query: exp.Query, columns: Mapping[str, Sequence[str]] | None = None) -> None:
    """Raises StatementTooLarge if a statement expands to too much.

    `columns` has the columns of tables, by their names in lower case, as far as they are known.
    """
    try:
        expansion(query, columns)
    except RecursionError:
        raise StatementTooLarge(
            "the SQL is nested too deeply", "Split the query into several tables"
        ) from None


def expansion(query: exp.Query, columns: Mapping[str, Sequence[str]] | None = None) -> Expansion:
    """The counts of a statement. Raises StatementTooLarge as soon as one is beyond its limit."""
    return _Counter(columns or {}).query(query, {}, ()).counts


_Known = Mapping[str, ExpandedRelation]  # common table expressions
_Scope = tuple[tuple[str, ExpandedRelation], ...]  # the relations of a FROM, by alias


class _Counter:
    """Counts queries from the inside out, each once."""

    def __init__(self, columns: Mapping[str, Sequence[str]]) -> None:
        self._columns = columns

    def query(self, query: exp.Expr, known: _Known, outer: _Scope) -> ExpandedRelation:
        clause = query.args.get("with_")
        if clause is not None:
            inner = dict(known)
            for part in clause.expressions:
                inner[part.alias.lower()] = renamed(self.query(part.this, inner, outer), part)
            known = inner
        if isinstance(query, exp.Subquery):
            found = (
                self._source(query, known, outer) if _is_join(query) else self.query(query.this, known, outer)
            )
        elif isinstance(query, exp.SetOperation):
            found = self._set_operation(query, known, outer)
        elif isinstance(query, exp.Select):
            found = self._select(query, known, outer)
        else:  # such as VALUES
            found = self._rows(query)
        return checked(found)

    def _set_operation(self, query: exp.SetOperation, known: _Known, outer: _Scope) -> ExpandedRelation:
        branches: list[ExpandedRelation] = []
        pending: list[exp.Expr] = [query]
        while pending:  # a chain of unions is one operator, and its left side may be long
            node = pending.pop()
            if type(node) is type(query) and not node.args.get("with_"):
                pending += (node.args["this"], node.args["expression"])
            else:
                branches.append(self.query(node, known, outer))
        counts = together(each.counts for each in branches)
        is_union = isinstance(query, exp.Union)
        widest = max(branches, key=lambda each: len(each.columns))
        columns = tuple(
            (name, most(each.columns[at][1] for each in branches if at < len(each.columns)))
            for at, (name, _) in enumerate(widest.columns)
        )
        counts = replace(
            counts,
            relations=counts.relations + 1,
            depth=counts.depth + (1 if is_union else len(branches)),
        )
        return made(
            ExpandedRelation(counts, columns, sum(each.branches for each in branches)),
            sum(each.rows for each in branches),
        )

    def _select(self, select: exp.Select, known: _Known, outer: _Scope) -> ExpandedRelation:
        scope, joined = self._from(select, known, outer)
        block = _Block(self, select, (*scope, *outer), scope, known)
        branches = 1 if block.is_grouped else joined.branches
        return made(ExpandedRelation(block.counts(joined), block.columns, branches), joined.rows * block.rows)

    def _from(self, select: exp.Select, known: _Known, outer: _Scope) -> tuple[_Scope, ExpandedRelation]:
        start = select.args.get("from_")
        sources: list[tuple[exp.Join | None, exp.Expr]] = [(None, start.this)] if start else []
        sources += [(join, join.this) for join in select.args.get("joins") or ()]
        sources += [(None, lateral) for lateral in select.args.get("laterals") or ()]
        return self._joined(sources, known, outer)

    def _joined(
        self, sources: Sequence[tuple[exp.Join | None, exp.Expr]], known: _Known, outer: _Scope
    ) -> tuple[_Scope, ExpandedRelation]:
        """The relations of a FROM, and their join."""
        scope: _Scope = ()
        joined = ExpandedRelation(NOTHING, ())
        for join, source in sources:
            relation = self._source(source, known, (*scope, *outer))
            scope = (*scope, (source.alias_or_name.lower(), relation))
            counts = together((joined.counts, relation.counts))
            counts = replace(counts, depth=counts.depth + (len(scope) > 1))
            on = join.args.get("on") if join is not None else None
            branches = max(joined.branches, relation.branches)
            if on is not None:
                condition = self.value(on, (*scope, *outer), known)
                counts = with_value(counts, condition, branches)
            both = ExpandedRelation(counts, joined.columns + relation.columns, branches)
            joined = checked(made(both, joined.rows * relation.rows))
        return scope, joined

    def _source(self, source: exp.Expr, known: _Known, outer: _Scope) -> ExpandedRelation:
        """A relation of a FROM."""
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            found = known.get(source.name.lower()) if not source.args.get("db") else None
            relation = found or self._table(source.name.lower())
        elif isinstance(source, exp.Table | exp.Lateral) and not isinstance(source.this, exp.Query):
            relation = self._generated(source.this, outer, known)
        elif isinstance(source, exp.Lateral):
            relation = self.query(source.this, known, outer)
        elif isinstance(source, exp.Subquery) and _is_join(source):
            relation = self._source(source.this, known, outer)
        elif isinstance(source, exp.Query):
            relation = self.query(source, known, outer)
        else:
            relation = self._rows(source)
        joins = source.args.get("joins") if not isinstance(source, exp.Select) else None
        if joins:
            plain = source.copy()
            plain.set("joins", None)
            _, relation = self._joined([(None, plain), *((join, join.this) for join in joins)], known, outer)
        for pivot in source.args.get("pivots") or ():
            relation = pivoted(relation, pivot)
        return renamed(relation, source)

    def _table(self, name: str) -> ExpandedRelation:
        names = self._columns.get(name)
        columns = names if names is not None else [""] * UNKNOWN_COLUMNS
        value = ExpandedValue(1, ASSUMED, ASSUMED)
        return ExpandedRelation(
            replace(NOTHING, relations=1, depth=1), tuple((each.lower(), value) for each in columns)
        )

    def _generated(self, function: exp.Expr, scope: _Scope, known: _Known) -> ExpandedRelation:
        """The rows of a function, such as explode(a) or range(10)."""
        value = self.value(function, scope, known)
        rows = value.rows if value.rows > 1 else value.number
        counts = with_value(replace(NOTHING, relations=1, depth=1), value, 1)
        inner = replace(value, size=1, rows=1)
        return made(ExpandedRelation(counts, (("", inner), ("", inner))), max(1, rows))

    def _rows(self, values: exp.Expr) -> ExpandedRelation:
        """Rows that are written out."""
        size = sum(1 for _ in values.walk())
        longest = max((len(text.name) for text in values.find_all(exp.Literal)), default=0)
        first = next(iter(values.expressions), None)
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        counts = Expansion(1, 1, size, width, 1, longest)
        columns = (("", ExpandedValue(1, longest, ASSUMED)),) * width
        return made(ExpandedRelation(counts, columns), max(1, len(values.expressions)))

    # -- expressions -------------------------------------------------------------------------------------

    def value(
        self, node: exp.Expr, scope: _Scope, known: _Known, aliases: Mapping[str, ExpandedValue] | None = None
    ) -> ExpandedValue:
        """What an expression expands to."""

        def column(named: exp.Column) -> ExpandedValue:
            name, owner = named.name.lower(), named.parts[0].name.lower()
            found = [] if named.table or not aliases or name not in aliases else [aliases[name]]
            if named.table:
                relations = [relation for alias, relation in scope if alias == owner]
            else:
                relations = [relation for _, relation in scope]
            found += [value for relation in relations for value in relation.named(name)]
            if (
                not found
            ):  # a field of a column, a column that is not known, or one of a column with that name
                found = [value for _, relation in scope for value in relation.named(owner)]
            return most((ExpandedValue(1, ASSUMED, ASSUMED), *found))

        def subquery(query: exp.Expr) -> ExpandedValue:
            inner = self.query(query, known, scope)
            longest = max((value.length for _, value in inner.columns), default=0)
            return ExpandedValue(1, longest, ASSUMED, queries=(inner.counts,))

        return ValueCounter(column, subquery).value(node)


class _Block:
    """One SELECT apart from its FROM."""

    def __init__(
        self, counter: _Counter, select: exp.Select, scope: _Scope, own: _Scope, known: _Known
    ) -> None:
        self._counter, self._select, self._scope, self._known = counter, select, scope, known
        self._aliases: dict[str, ExpandedValue] = {}
        self._values: list[ExpandedValue] = []
        columns: list[tuple[str, ExpandedValue]] = []
        for part in select.expressions:
            if part.is_star:
                columns += _starred(part, own)
                self._values.append(ExpandedValue(max(1, len(columns)), 0, 0))
            else:
                value = self._value(part)
                self._values.append(value)
                # The values of aggregates and window functions are not computed anew above their SELECT.
                outside = replace(value, size=1) if is_combined(part) else value
                outside = replace(outside, queries=(), rows=1)
                columns.append((part.alias_or_name.lower(), outside))
                if part.alias:
                    self._aliases[part.alias.lower()] = outside
            if len(columns) > COLUMNS_MAX:
                raise too_large("columns", len(columns), COLUMNS_MAX)
        self.columns = tuple(columns)
        group = select.args.get("group")
        self.is_grouped = bool(group or select.args.get("having") or select.args.get("distinct"))
        self._sets = _grouping_sets(group)
        self._keys = [] if group is None else [self._value(key) for key in _group_keys(group)]
        self._overlap = window_overlap(select)
        # The rows that it makes of one.
        self.rows = self._sets * self._overlap * prod(value.rows for value in self._values)

    def _value(self, node: exp.Expr) -> ExpandedValue:
        return self._counter.value(node, self._scope, self._known, self._aliases)

    def counts(self, joined: ExpandedRelation) -> Expansion:
        """The counts of the SELECT, of which `joined` is the FROM."""
        select, before = self._select, joined.counts
        distinct = sum(1 for part in select.expressions for _ in part.find_all(exp.Distinct))
        windows = {_window(window) for part in _parts(select) for window in part.find_all(exp.Window)}
        operators = 1 + len(windows)
        counts = replace(
            before,
            relations=before.relations + operators,
            depth=before.depth + operators,
            columns=max(before.columns, len(self.columns)),
            rows=max(before.rows, joined.rows * self.rows * (1 + distinct)),
        )
        for value in (*self._values, *self._keys):
            counts = with_value(counts, value, 1)
        # Each grouping set, distinct aggregate and sliding window has its own copy of the rows.
        copies = (self._sets - 1) * (len(self._keys) + 1) + distinct * (distinct + len(self._values))
        copies += (self._overlap - 1) * (len(joined.columns) + 8)
        counts = replace(counts, expressions=counts.expressions + copies)
        for clause in ("where", "having", "qualify", "order", "sort", "cluster", "distribute"):
            node = select.args.get(clause)
            for part in [] if node is None else node.iter_expressions():
                counts = with_value(counts, self._value(part), joined.branches)
        return counts


def _is_join(subquery: exp.Expr) -> bool:
    """Whether it is a join in brackets."""
    return isinstance(subquery.this, exp.Table)


def _starred(part: exp.Expr, scope: _Scope) -> list[tuple[str, ExpandedValue]]:
    """The columns that a `*` stands for. Those of an EXCEPT count too."""
    owner = part.table.lower() if isinstance(part, exp.Column) else None
    return [column for alias, relation in scope if owner in (None, alias) for column in relation.columns]


def _group_keys(group: exp.Group) -> list[exp.Expr]:
    keys = [*group.expressions]
    for optional in ("cube", "rollup", "grouping_sets"):
        keys += group.args.get(optional) or ()
    return keys


def _grouping_sets(group: exp.Group | None) -> int:
    """How many groupings a GROUP BY stands for."""
    if group is None:
        return 1
    plain = sum(
        1 for key in group.expressions if not isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets)
    )
    return prod(_sets_of(key, plain) for key in _group_keys(group))


def _sets_of(key: exp.Expr, plain: int) -> int:
    names = len(key.expressions) or plain  # WITH CUBE and WITH ROLLUP are of all keys
    if isinstance(key, exp.Cube):
        return 1 << names
    if isinstance(key, exp.Rollup):
        return 1 + names
    if isinstance(key, exp.GroupingSets):
        return sum(_sets_of(each, 0) for each in key.expressions)
    return 1


def _parts(select: exp.Select) -> list[exp.Expr]:
    others = (select.args.get("qualify"), select.args.get("order"))
    return [*select.expressions, *(part for part in others if part is not None)]


def _window(window: exp.Window) -> str:
    """A window function's rows and their order: functions with the same share an operator."""
    keys = [*(window.args.get("partition_by") or ()), window.args.get("order"), window.args.get("alias")]
    return " ".join(repr(key) if isinstance(key, exp.Expr) else str(key) for key in keys)
