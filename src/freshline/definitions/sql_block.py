"""One SELECT without what it reads: its groups, its window functions and its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sqlglot import exp

from freshline.definitions.sql_joins import TimeBounds
from freshline.definitions.sql_time import Relation, Scope, Time

# Aggregates of Spark that sqlglot takes for functions like any other.
_AGGREGATES: Final = frozenset(
    {"COLLECT_UNION", "COUNT_MIN_SKETCH", "EVERY", "HISTOGRAM_NUMERIC", "MEAN", "MEASURE", "SOME", "STD",
     "TRY_AVG", "TRY_SUM"}
)  # fmt: skip


class Block:
    """What the expressions of a SELECT make of the time of its relations."""

    def __init__(self, select: exp.Select, scope: Scope, bounds: TimeBounds) -> None:
        self._select = select
        self._scope = scope
        self._bounds = bounds
        group = select.args.get("group")
        self._keys = [*self._group_keys(group)] if group else []
        self.is_grouped = bool(group or select.args.get("having")) or any(
            _has_aggregate(part) for part in select.expressions
        )
        for key in self._keys:
            time = scope.time(key)
            if time and time.is_window:
                scope.window = time

    def times(self, nodes: Iterable[exp.Expr]) -> list[Time]:
        """What of the expressions can stand for the time of a row."""
        times = [self._scope.time(node) for node in nodes]
        return [time for time in times if time and not time.shifted and self._bounds.complete(time)]

    def group_times(self) -> list[Time]:
        return self.times(self._keys)

    def partitions(self) -> Iterator[list[exp.Expr]]:
        """The PARTITION BY of each window function."""
        named = {window.name.lower(): window for window in self._select.args.get("windows") or ()}
        places = [*self._select.expressions, self._select.args.get("qualify"), self._select.args.get("order")]
        for window in (window for place in places if place for window in place.find_all(exp.Window)):
            definition = named.get(window.alias.lower(), window) if window.alias else window
            yield definition.args.get("partition_by") or []

    def result(self) -> Relation:
        names: list[str] | None = []
        times: dict[str, Time] = {}
        for part in self._select.expressions:
            columns = self._star(part) if part.is_star else {part.alias_or_name.lower(): part}
            if columns is None:
                names = None
            elif names is not None:
                names += columns
            for name, node in (columns or self._known_times(part)).items():
                for time in self.times([node]):
                    times[name] = Time(frozenset(), time.window_us, time.is_window)
        reads = any(relation.reads for relation in self._scope.relations.values())
        return Relation(None if names is None else tuple(names), times, reads, self._bounds.reach_us)

    def _group_keys(self, group: exp.Group) -> Iterator[exp.Expr]:
        """The keys of GROUP BY; what CUBE, ROLLUP and GROUPING SETS may leave out is none."""
        parts = self._select.expressions
        if group.args.get("all"):
            yield from (part for part in parts if not _has_aggregate(part))
        by_alias = {part.alias.lower(): part for part in parts if isinstance(part, exp.Alias)}
        for key in group.expressions:
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(parts):
                yield parts[int(key.name) - 1]
            elif isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets):
                continue
            # A name means a column of the sources before it means one of the result.
            elif isinstance(key, exp.Column) and not key.table and self._scope.time(key) is None:
                yield by_alias.get(key.name.lower(), key)
            else:
                yield key

    def _star(self, part: exp.Expr) -> dict[str, exp.Expr] | None:
        """The columns of `*` or `a.*`; None where some are not known."""
        columns: dict[str, exp.Expr] = {}
        for alias, relation in self._starred(part):
            if relation.names is None:
                return None
            columns |= {name: exp.column(name, alias) for name in relation.names}
        return {name: node for name, node in columns.items() if name not in _left_out(part)}

    def _known_times(self, part: exp.Expr) -> dict[str, exp.Expr]:
        return {
            name: exp.column(name, alias)
            for alias, relation in self._starred(part)
            for name in relation.times
            if name not in _left_out(part)
        }

    def _starred(self, part: exp.Expr) -> Iterator[tuple[str, Relation]]:
        only = part.table.lower() if isinstance(part, exp.Column) else ""
        return ((a, relation) for a, relation in self._scope.relations.items() if not only or a == only)


def _left_out(part: exp.Expr) -> set[str]:
    star = part.this if isinstance(part, exp.Column) else part
    return {column.name.lower() for column in star.args.get("except_") or ()}


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate that is not a window function's."""
    if isinstance(node, exp.Window | exp.Query):
        return False
    # What follows a comparison is another ANY.
    if isinstance(node, exp.AggFunc) or (isinstance(node, exp.Any) and not isinstance(node.parent, exp.EQ)):
        return True
    if isinstance(node, exp.Anonymous) and (node.name.upper() in _AGGREGATES or "_agg" in node.name.lower()):
        return True
    return any(_has_aggregate(child) for child in node.iter_expressions())
