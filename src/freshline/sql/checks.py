"""Whether a table that is a query can be kept up to date by appending: one piece of time of its sources each.

Such an update runs the query over (F − lookback, NF] of its sources and keeps the rows with a timestamp in
(F, NF]. That equals the query over everything only under two conditions. Everything that a row is made of has
arrived by the row's timestamp, and lies no further back than the lookback.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import lcm
from typing import Final

from sqlglot import exp

from freshline.sql.block import SelectBlock, shortest
from freshline.sql.joins import TimeBounds
from freshline.sql.nondeterminism import CLOCK, unsteady
from freshline.sql.scope import Scope
from freshline.sql.time import CONSTANT, Relation, Time, TimeForm, in_common, longest

_BY_TIME: Final = "Group by the timestamp column, by date_trunc of it or by window(ts, '1 hour')"
_KNOWN_CUTS: Final = (
    "Cut it with date_trunc('hour', ts), with window(ts, '1 hour') or with floor, as in "
    "timestamp_seconds(floor(unix_seconds(ts) / 10) * 10)"
)
_AS_JOIN: Final = "Write it as a join on equal timestamps, or on timestamps within a range of each other"
_NOT_UNDERSTOOD: Final = (
    "it has a form that Freshline does not understand",
    "Write it with SELECT and JOIN",
)
# The clauses of a SELECT that the check understands.
_CLAUSES: Final = frozenset(
    {"with_", "hint", "distinct", "expressions", "from_", "joins", "laterals", "where", "group", "having",
     "qualify", "windows", "distribute", "sort", "cluster", "order", "limit", "offset"}
)  # fmt: skip
_EXPRESSIONS: Final = ("expressions", "where", "group", "having", "qualify", "order", "sort", "windows")


class QueryCheck:
    """What keeps a query from being appended to, and its columns."""

    def __init__(self, query: exp.Query, sources: Mapping[str, Relation], by_record: bool = False) -> None:
        self.errors: list[tuple[str, str]] = []  # (what, remedy): why its rows cannot only be appended
        self.refusals: list[tuple[str, str]] = []  # why it cannot be a table at all: it asks chance
        self.windows: set[int] = set()  # lengths of its windows: updates must end at their edges
        self.is_vague = False  # whether it joins over times in a way that the check does not understand
        self._by_record = by_record  # for a base table: the query handles each record by itself
        self._windows_refused: list[str] = []
        self._check_functions(query, sources.values())
        self.result = self._query(query, {name.lower(): relation for name, relation in sources.items()})
        self._explain_windows()

    def timestamp(self, column: str) -> None:
        """Checks the column that becomes the table's timestamp."""
        name = column.lower()
        time = self.result.times.get(name)
        if self.result.names is not None and name not in self.result.names:
            remedy = "Select one of that name, or name the timestamp column with `timestamp`"
            self._refuse(f"it gives no column `{column}`", remedy)
        elif time is None or not self._is_timestamp(time):
            remedy = "Select the timestamp of a source as it is, or the start of its window"
            self._refuse(f"its column `{column}` is not the timestamp of what it reads", remedy)
            self._explain_windows()
        else:
            self._window(time.step_us)

    def _is_timestamp(self, time: Time) -> bool:
        return time.form is TimeForm.INSTANT and (time.is_exact if self._by_record else time.is_own)

    def _refuse(self, what: str, remedy: str) -> None:
        if (what, remedy) not in self.errors:
            self.errors.append((what, remedy))

    def _reject(self, what: str, remedy: str) -> None:
        if (what, remedy) not in self.refusals:
            self.refusals.append((what, remedy))

    def _explain_windows(self) -> None:
        """Reports windows that the check cannot rely on, but only if the query has another error."""
        if self.errors:
            for windows in self._windows_refused:
                self._refuse(f"it has {windows}", "Use windows of a fixed length that do not overlap")

    def _window(self, step_us: int) -> None:
        if step_us > 1:
            self.windows.add(step_us)

    def _check_functions(self, query: exp.Expr, sources: Collection[Relation]) -> None:
        for name in unsteady(query, sources):
            # A data file keeps its name, but the files of a table are rewritten under other names.
            if self._by_record and name == "input_file_name":
                continue
            if name in CLOCK and not self._by_record:
                what = f"`{name}` moves with the table's freshness"
                self._refuse(what, "Leave it out, and let readers select by time")
            else:
                what = f"`{name}` gives something else each time it is asked"
                self._reject(what, "Use only what the records say, such as their timestamps")

    def _query(self, query: exp.Expr, known: Mapping[str, Relation]) -> Relation:
        if query.args.get("limit") or query.args.get("offset"):
            what = "LIMIT and OFFSET select other rows when more rows arrive"
            self._refuse(what, "Remove them; select the rows with WHERE")
        known = self._with(query, known)
        if isinstance(query, exp.Subquery):
            return self._query(query.this, known)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, known)
        if isinstance(query, exp.Select):
            return self._select(query, known)
        if not isinstance(query, exp.Values):
            self._refuse(*_NOT_UNDERSTOOD)
        return CONSTANT

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
        if any(query.args.get(key) for key in ("by_name", "side", "kind", "on")):
            self._refuse(*_NOT_UNDERSTOOD)
        united = _united(left, right)
        if not query.args["distinct"] and isinstance(query, exp.Union):
            return united
        # Rows that include their timestamps can only equal rows of the same time.
        what = f"{query.key.upper()} compares rows without their timestamps"
        return united.coarsened(self._need_time(shortest(united.times.values()), what))

    def _select(self, select: exp.Select, known: Mapping[str, Relation]) -> Relation:
        if not {key for key, value in select.args.items() if value} <= _CLAUSES:
            self._refuse(*_NOT_UNDERSTOOD)
        joins = [*_joins(select)]
        scope = Scope({alias: relation for _, alias, relation in self._from(joins, known)})
        bounds = self._bounds(select, joins, scope)
        self._check_subqueries(select, joins)
        result = self._rows(select, joins, scope, bounds)
        if bounds.ranges and not result.times and not self.errors:
            what = "it joins over a range of time, and none of its columns is the greatest of the timestamps"
            self._refuse(what, "Select the greatest of all, such as `greatest(a.ts, b.ts) AS ts`")
        self._windows_refused += scope.refused
        self.is_vague = self.is_vague or bounds.is_vague
        return replace(result, reach_us=bounds.reach_us())

    def _rows(
        self,
        select: exp.Select,
        joins: list[tuple[exp.Join | None, exp.Expr]],
        scope: Scope,
        bounds: TimeBounds,
    ) -> Relation:
        """The rows that a SELECT makes of its relations."""
        kinds = {
            alias: join.kind if join else "" for alias, (join, _) in zip(scope.relations, joins, strict=True)
        }
        hidden = {alias for alias, kind in kinds.items() if kind in ("SEMI", "ANTI")}
        in_order = not any(join and (join.args.get("using") or join.method) for join, _ in joins)
        block = SelectBlock(select, scope, bounds, hidden, in_order)
        step_us = 1
        if block.is_grouped:
            what, remedy = "it has an aggregate that does not group by time", _BY_TIME
            if block.cuts_time(block.keys):
                what, remedy = "it groups by time cut in a way whose windows are not known", _KNOWN_CUTS
            step_us = lcm(step_us, self._need_time(block.group_step(), what, remedy))
        for partition in block.partitions():
            what, remedy = "it has a window function without the time in its PARTITION BY", _BY_TIME
            if block.cuts_time(partition):
                what = "it has a PARTITION BY with time cut in a way whose windows are not known"
                remedy = _KNOWN_CUTS
            step_us = lcm(step_us, self._need_time(block.step_of(partition), what, remedy))
        self._window(bounds.step_us)
        result = block.result(step_us)
        if select.args.get("distinct"):
            what = "DISTINCT compares rows without their timestamps"
            result = result.coarsened(self._need_time(shortest(result.times.values()), what))
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
                relation = known.get(source.name.lower(), CONSTANT)
            elif isinstance(source, exp.Subquery):
                relation = self._query(source, known)
            else:
                relation = CONSTANT
                if source.find(exp.Query):
                    self._refuse("a subquery stands in a LATERAL", _AS_JOIN)
            if source.args.get("sample"):
                self._reject("TABLESAMPLE selects other rows each time", "Remove it")
            for pivot in source.args.get("pivots") or ():
                if not pivot.args.get("unpivot"):
                    self._refuse("PIVOT does not group by time", "Write it with GROUP BY and the timestamp")
                relation = _unpivoted(relation, pivot)
            yield join, alias, _renamed(relation, source)

    def _bounds(
        self, select: exp.Select, joins: list[tuple[exp.Join | None, exp.Expr]], scope: Scope
    ) -> TimeBounds:
        where = select.args.get("where")
        conditions = [where.this] if where else []
        using: list[tuple[str, str, str]] = []
        aliases = [*scope.relations]
        against: list[tuple[int, exp.Join]] = []  # the ANTI JOINs, whose conditions exclude rows
        for number, (join, _) in enumerate(joins):
            if join is None:
                continue
            if join.kind == "ANTI":
                against.append((number, join))
                continue
            conditions += [join.args["on"]] if join.args.get("on") else []
            using += _using(join, aliases[number], aliases[:number], scope)
            if join.side and join.kind != "SEMI":
                what = f"the {join.side} JOIN gives a row that a later match would have to take back"
                self._refuse(what, "Write an inner join")
        bounds = TimeBounds(scope, conditions, using)
        for number, join in against:
            said = [join.args["on"]] if join.args.get("on") else []
            also = _using(join, aliases[number], aliases[:number], scope)
            self._check_match(
                TimeBounds(scope, conditions + said, using + also), bounds, aliases, number, "ANTI"
            )
        for number, (join, _) in enumerate(joins):
            if join is not None and join.kind == "SEMI":
                self._check_match(bounds, bounds, aliases, number, "SEMI")
        for alias in bounds.unbound():
            what = f"`{alias}` is joined without a bound in time"
            remedy = "Add one to ON, such as `a.ts = b.ts` or `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts`"
            self._refuse(what, remedy)
        if self._by_record and bounds.count > 1:
            self._refuse("it joins the feed with itself", "Load each record by itself; join in another table")
        return bounds

    def _check_match(
        self, said: TimeBounds, bounds: TimeBounds, aliases: list[str], number: int, kind: str
    ) -> None:
        """Requires that a SEMI or ANTI JOIN compares rows of the same time."""
        joined = aliases[number]
        for alias in aliases[:number]:
            step_us = said.equal_step(alias, joined)
            if step_us is not None:
                bounds.join(alias, joined, step_us)
                return
        self._refuse(f"the {kind} JOIN is not on equal timestamps", _AS_JOIN)

    def _check_subqueries(self, select: exp.Select, joins: list[tuple[exp.Join | None, exp.Expr]]) -> None:
        places = [part for key in _EXPRESSIONS for part in _listed(select.args.get(key))]
        places += [join.args["on"] for join, _ in joins if join and join.args.get("on")]
        if any(place.find(exp.Query) for place in places):
            self._refuse("a subquery stands in an expression", _AS_JOIN)

    def _need_time(self, step_us: int | None, what: str, remedy: str = _BY_TIME) -> int:
        """Requires windows of time in which rows are combined, and returns their length."""
        if self._by_record:
            self._refuse("it compares records with each other", "Load each record by itself")
        elif step_us is None:
            self._refuse(what, remedy)
        else:
            self._window(step_us)
        return step_us or 1


def _joins(select: exp.Select) -> Iterator[tuple[exp.Join | None, exp.Expr]]:
    """The relations of the FROM, each with its join; the first has none."""
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


def _using(join: exp.Join, joined: str, earlier: list[str], scope: Scope) -> list[tuple[str, str, str]]:
    """The times that a join declares equal: a column and the two relations that have it."""
    names = [column.name.lower() for column in join.args.get("using") or ()]
    shared = scope.relations[joined].times if join.method == "NATURAL" else names
    return [
        (name, alias, joined) for name in shared for alias in earlier if name in scope.relations[alias].times
    ]


def _united(left: Relation, right: Relation) -> Relation:
    """The union of the rows: a column is a time if it is one on both sides."""
    times: dict[str, Time] = {}
    if left.names is not None and right.names is not None:
        for position, name in enumerate(left.names[: len(right.names)]):
            one, other = left.time_at(position), right.time_at(position)
            if one and other and one.is_like(other) and (one.is_same(other) or (one.is_own and other.is_own)):
                times[name] = in_common([one, other])
    reach_us = longest([left.reach_us, right.reach_us])
    united = Relation(left.names, times, left.reads or right.reads, reach_us=reach_us)
    return united.coarsened(lcm(left.step_us, right.step_us))


def _unpivoted(relation: Relation, pivot: exp.Expr) -> Relation:
    """The relation after an UNPIVOT: columns that become rows are no longer times."""
    named = {identifier.name.lower() for identifier in pivot.find_all(exp.Identifier)}
    times = {name: time for name, time in relation.times.items() if name not in named}
    return replace(relation, names=None, times=times)


def _renamed(relation: Relation, source: exp.Expr) -> Relation:
    """The relation with the column names that its alias gives it."""
    alias = source.args.get("alias")
    columns = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
    if not columns:
        return relation
    if relation.names is None or len(columns) != len(relation.names):
        return replace(relation, names=None if relation.reads else tuple(columns), times={})
    times = {
        new: time for position, new in enumerate(columns) if (time := relation.time_at(position)) is not None
    }
    return replace(relation, names=tuple(columns), times=times)


def _listed(value: object) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
