"""Whether a table that is a query can be kept up to date by loading its sources a piece of time at a time.

An update runs the query over (F − lookback, NF] of its sources and keeps the rows with a timestamp in
(F, NF]. That gives what the query over everything would give only if all that a row is made of has come when
the row's timestamp has come, and lies no further back than the lookback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from sqlglot import exp

from freshline.definitions.sql_block import Block
from freshline.definitions.sql_joins import TimeBounds
from freshline.definitions.sql_time import NOT_KNOWN, Relation, Scope, Time

_BY_TIME: Final = "Group by the timestamp column, by date_trunc of it or by window(ts, '1 hour')"
_AS_JOIN: Final = "Write it as a join on equal timestamps, or on timestamps within a range of each other"
# Functions whose value is another with every run, or with how the rows happen to lie in files.
_UNSTEADY: Final = frozenset(
    {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "INPUT_FILE_BLOCK_LENGTH",
     "INPUT_FILE_BLOCK_START", "INPUT_FILE_NAME", "JAVA_METHOD", "LOCALTIME", "LOCALTIMESTAMP",
     "MONOTONICALLY_INCREASING_ID", "NOW", "RAND", "RANDN", "RANDSTR", "REFLECT", "SESSION_USER", "SHUFFLE",
     "SPARK_PARTITION_ID", "TRY_REFLECT", "UNIFORM", "USER", "UUID"}
)  # fmt: skip
# Those that Spark takes without brackets too, and sqlglot then for a column.
_BARE: Final = frozenset({"CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP"})
_DAYS: Final = frozenset({"now", "today", "tomorrow", "yesterday"})  # as in TIMESTAMP 'now'
_EXPRESSIONS: Final = ("expressions", "where", "group", "having", "qualify", "order", "sort", "windows")


class QueryCheck:
    """What is wrong with a query, and what its columns are."""

    def __init__(self, query: exp.Query, sources: Mapping[str, Relation], by_record: bool = False) -> None:
        self.errors: list[tuple[str, str]] = []  # what, remedy
        self.windows: list[int | None] = []  # the lengths of its windows: updates must end at their edges
        self.ranges = False  # whether it joins over a range of time, and must look back
        self._by_record = by_record  # a base table's: each record by itself
        self._check_functions(query)
        self.result = self._query(query, {name.lower(): relation for name, relation in sources.items()})

    def timestamp(self, column: str) -> None:
        """Checks the column that is to be the table's timestamp."""
        name = column.lower()
        time = self.result.times.get(name)
        if self.result.names is not None and name not in self.result.names:
            remedy = "Select one of that name, or name the timestamp column with `timestamp`"
            self._refuse(f"it gives no column `{column}`", remedy)
        elif time is None or (self._by_record and time.window_us != 0):
            remedy = "Select the timestamp of a source as it is, or the start of its window"
            self._refuse(f"its column `{column}` is not the timestamp of what it reads", remedy)
        elif time.window_us != 0:
            self.windows.append(time.window_us)

    def _refuse(self, what: str, remedy: str) -> None:
        if (what, remedy) not in self.errors:
            self.errors.append((what, remedy))

    def _check_functions(self, query: exp.Expr) -> None:
        for node in query.walk():
            name = _unsteady(node)
            # A data file keeps its name; a table's files do not keep theirs.
            if name is not None and not (self._by_record and name == "input_file_name"):
                what = f"`{name}` gives something else each time it is asked"
                self._refuse(what, "Use only what the records say, such as their timestamps")

    def _query(self, query: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        if query.args.get("limit") or query.args.get("offset"):
            what = "LIMIT and OFFSET pick other rows whenever more has come"
            self._refuse(what, "Remove them; say what is wanted in WHERE")
        known = self._with(query, known)
        if isinstance(query, exp.Subquery):
            return self._query(query.this, known)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, known)
        if isinstance(query, exp.Select):
            return self._select(query, known)
        if not isinstance(query, exp.Values):
            self._refuse(
                "it is written in a way that is not understood here", "Write it with SELECT and JOIN"
            )
        return NOT_KNOWN

    def _with(self, query: exp.Expr, known: Mapping[str, Relation]) -> Mapping[str, Relation]:
        clause = query.args.get("with_")
        if clause is None:
            return known
        if clause.recursive:
            self._refuse("WITH RECURSIVE has no end in time", "Write it without recursion")
            return known
        inner = dict(known)
        for part in clause.expressions:
            inner[part.alias.lower()] = _renamed(self._query(part.this, inner), part)
        return inner

    def _set_operation(self, query: exp.SetOperation, known: Mapping[str, Relation]) -> Relation:
        left, right = self._query(query.this, known), self._query(query.expression, known)
        if query.args["distinct"] or not isinstance(query, exp.Union):
            # Rows that have their timestamps can only be equal to rows of their own time.
            own = [time for side in (left, right) for time in side.times.values()]
            what = f"{query.key.upper()} compares rows without their timestamps"
            self._need_time(own if left.times and right.times else [], what)
        return _united(left, right)

    def _select(self, select: exp.Select, known: Mapping[str, Relation]) -> Relation:
        joins = [*_joins(select)]
        relations = {alias: relation for _, alias, relation in self._from(joins, known)}
        scope = Scope(relations)
        bounds = self._bounds(select, joins, scope)
        self._check_subqueries(select, joins)
        block = Block(select, scope, bounds)
        self._check_groups(block)
        self._check_window_functions(block)
        result = block.result()
        if select.args.get("distinct"):
            self._need_time([*result.times.values()], "DISTINCT compares rows without their timestamps")
        if bounds.ranges and not result.times and not self.errors:
            what = "it joins over a range of time, and none of its columns is the greatest of the timestamps"
            self._refuse(what, "Select the greatest of all, such as `greatest(a.ts, b.ts) AS ts`")
        for windows in scope.refused:
            self._refuse(f"it has {windows}", "Use windows of a fixed length that do not overlap")
        return result

    def _from(
        self, joins: list[tuple[exp.Join | None, exp.Expr]], known: Mapping[str, Relation]
    ) -> Iterator[tuple[exp.Join | None, str, Relation]]:
        aliases: set[str] = set()
        for number, (join, source) in enumerate(joins, start=1):
            alias = source.alias_or_name.lower()
            if not alias or alias in aliases:
                alias = f"{alias or 'relation'} #{number}"
            aliases.add(alias)
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                relation = known.get(source.name.lower(), NOT_KNOWN)
            elif isinstance(source, exp.Subquery):
                relation = self._query(source, known)
            else:
                relation = NOT_KNOWN
                if source.find(exp.Query):
                    self._refuse("a subquery stands in a LATERAL", _AS_JOIN)
            if source.args.get("sample"):
                self._refuse("TABLESAMPLE picks other rows each time", "Remove it")
            if any(not pivot.args.get("unpivot") for pivot in source.args.get("pivots") or ()):
                self._refuse("PIVOT does not group by time", "Write it with GROUP BY and the timestamp")
            yield join, alias, _renamed(relation, source)

    def _bounds(
        self, select: exp.Select, joins: list[tuple[exp.Join | None, exp.Expr]], scope: Scope
    ) -> TimeBounds:
        conditions = [join.args["on"] for join, _ in joins if join and join.args.get("on")]
        where = select.args.get("where")
        bounds = TimeBounds(scope, [*conditions, where.this] if where else conditions)
        aliases = [*scope.relations]
        for number, (join, _) in enumerate(joins):
            if join is None:
                continue
            earlier, joined = aliases[:number], aliases[number]
            names = [column.name.lower() for column in join.args.get("using") or ()]
            for name in scope.relations[joined].times if join.method == "NATURAL" else names:
                bounds.using(name, joined, earlier)
            if join.kind in ("SEMI", "ANTI"):
                if not any(bounds.are_equal(alias, joined) for alias in earlier):
                    self._refuse(f"the {join.kind} JOIN is not on equal timestamps", _AS_JOIN)
            elif join.side:
                what = f"the {join.side} JOIN gives a row that a later match would have to take back"
                self._refuse(what, "Write an inner join")
        for alias in bounds.unbound():
            what = f"`{alias}` is joined without a bound in time"
            remedy = "Add one to ON, such as `a.ts = b.ts` or `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts`"
            self._refuse(what, remedy)
        if self._by_record and bounds.count > 1:
            self._refuse("it joins the feed with itself", "Load each record by itself; join in another table")
        self.windows += bounds.windows
        self.ranges = self.ranges or bounds.ranges
        return bounds

    def _check_subqueries(self, select: exp.Select, joins: list[tuple[exp.Join | None, exp.Expr]]) -> None:
        places = [part for key in _EXPRESSIONS for part in _listed(select.args.get(key))]
        places += [join.args["on"] for join, _ in joins if join and join.args.get("on")]
        if any(place.find(exp.Query) for place in places):
            self._refuse("a subquery stands in an expression", _AS_JOIN)

    def _check_groups(self, block: Block) -> None:
        if block.is_grouped:
            self._need_time(block.group_times(), "it has an aggregate that does not group by time")

    def _check_window_functions(self, block: Block) -> None:
        for partition in block.partitions():
            times = block.times(partition)
            self._need_time(times, "it has a window function without the time in its PARTITION BY")

    def _need_time(self, times: list[Time], what: str) -> None:
        """One of the times must tell rows apart; where none is the timestamp itself, windows do."""
        if self._by_record:
            self._refuse("it compares records with each other", "Load each record by itself")
        elif not times:
            self._refuse(what, _BY_TIME)
        elif all(time.window_us != 0 for time in times):
            self.windows.append(min((time.window_us for time in times if time.window_us), default=None))


def _joins(select: exp.Select) -> Iterator[tuple[exp.Join | None, exp.Expr]]:
    """What stands in the FROM, each with its join; the first has none."""
    start = select.args.get("from_")
    pending: list[tuple[exp.Join | None, exp.Expr]] = [(None, start.this)] if start else []
    pending += [(join, join.this) for join in select.args.get("joins") or ()]
    while pending:
        join, source = pending.pop(0)
        yield join, source
        inner = [(each, each.this) for each in source.args.get("joins") or ()]
        pending[:0] = inner
    for lateral in select.args.get("laterals") or ():
        yield None, lateral


def _unsteady(node: exp.Expr) -> str | None:
    """What a query calls that has no lasting value, if this is it."""
    if isinstance(node, exp.Cast):
        word = node.this.name.strip().lower() if node.this.is_string else ""
        return f"'{word}'" if word in _DAYS and node.is_type(*exp.DataType.TEMPORAL_TYPES) else None
    if isinstance(node, exp.Column):
        is_bare = not node.table and not node.this.args.get("quoted") and node.name.upper() in _BARE
        return node.name.lower() if is_bare else None
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        return name.lower() if name.upper() in _UNSTEADY else None
    return None


def _united(left: Relation, right: Relation) -> Relation:
    """The rows of both: a column says of time what both sides say, and the longer window of the two."""
    names, others = left.names, right.names
    positions = (
        zip(names, others, strict=False) if names and others else ((name, name) for name in left.times)
    )
    times: dict[str, Time] = {}
    for name, other in positions:
        if name in left.times and other in right.times:
            lengths = (left.times[name].window_us, right.times[other].window_us)
            longer = None if None in lengths else max(length for length in lengths if length is not None)
            times[name] = replace(left.times[name], window_us=longer)
    return Relation(names, times, left.reads or right.reads, max(left.reach_us, right.reach_us))


def _renamed(relation: Relation, source: exp.Expr) -> Relation:
    """A relation whose alias names its columns anew."""
    alias = source.args.get("alias")
    columns = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
    if not columns or relation.names is None or len(columns) != len(relation.names):
        return replace(relation, names=None, times={}) if columns else relation
    times = {
        new: relation.times[old]
        for new, old in zip(columns, relation.names, strict=True)
        if old in relation.times
    }
    return replace(relation, names=tuple(columns), times=times)


def _listed(value: object) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
