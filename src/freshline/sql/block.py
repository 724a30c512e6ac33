"""One SELECT apart from its FROM: its groups, its window functions and its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import lcm
from typing import Final

from sqlglot import exp

from freshline.sql.joins import TimeBounds
from freshline.sql.scope import Scope
from freshline.sql.time import Relation, Time, TimeForm

# Aggregates of Spark that sqlglot parses as ordinary functions.
_AGGREGATES: Final = frozenset(
    {"COLLECT_UNION", "COUNT_MIN_SKETCH", "EVERY", "HISTOGRAM_NUMERIC", "MEAN", "MEASURE", "SOME", "STD",
     "TRY_AVG", "TRY_SUM"}
)  # fmt: skip
_OPTIONAL: Final = ("rollup", "cube", "grouping_sets")
# Modifiers of a `*` that keep its columns as they are, or remove some.
_PLAIN_STAR: Final = frozenset({"except_"})


class SelectBlock:
    """What the expressions of a SELECT do with the time of its relations."""

    def __init__(
        self, select: exp.Select, scope: Scope, bounds: TimeBounds, hidden: set[str], in_order: bool
    ) -> None:
        self._select = select
        self._scope = scope
        self._bounds = bounds
        self._hidden = hidden  # the relations that `*` leaves out
        self._in_order = in_order  # whether `*` gives the columns of one relation after another
        group = select.args.get("group")
        self.keys = [*self._group_keys(group)] if group else []
        self.is_grouped = bool(group or select.args.get("having")) or any(
            has_aggregate(part) for part in select.expressions
        )
        for key in self.keys:
            time = scope.time(key)
            if time and time.form is TimeForm.WINDOW:
                scope.window = time

    def step_of(self, nodes: Iterable[exp.Expr]) -> int | None:
        """The shortest windows such that rows with equal expressions share one; None if there are none."""
        return shortest(self._times(nodes))

    def cuts_time(self, nodes: Iterable[exp.Expr]) -> bool:
        """Whether an expression is computed from a time in a way that this module does not know."""
        return any(self._scope.time(node) is None and self._scope.mentioned(node) for node in nodes)

    def group_step(self) -> int | None:
        """The length of the windows that it groups by; its aggregates belong to these windows."""
        self._scope.group_us = self.step_of(self.keys)
        return self._scope.group_us

    def partitions(self) -> Iterator[list[exp.Expr]]:
        """The PARTITION BY of each window function."""
        named = {window.name.lower(): window for window in self._select.args.get("windows") or ()}
        places = [*self._select.expressions, self._select.args.get("qualify"), self._select.args.get("order")]
        for window in (window for place in places if place for window in place.find_all(exp.Window)):
            definition = named.get(window.alias.lower(), window) if window.alias else window
            yield definition.args.get("partition_by") or []

    def result(self, step_us: int) -> Relation:
        """Its rows, which are final at the edges of windows of this length."""
        names: list[str] | None = []
        times: dict[str, Time] = {}
        for part in self._select.expressions:
            columns = self._star(part) if part.is_star else [(part.alias_or_name.lower(), part)]
            if columns is None:
                names = None
            elif names is not None:
                names += [name for name, _ in columns]
            for name, node in self._known_times(part) if columns is None else columns:
                for time in self._times([node]):
                    times[name] = Time(
                        frozenset(), time.step_us, time.low_us, time.high_us, time.form, time.unit_us
                    )
        reads = any(relation.reads for relation in self._scope.relations.values())
        relation = Relation(None if names is None else tuple(names), times, reads)
        return relation.coarsened(lcm(step_us, self._bounds.step_us))

    def _times(self, nodes: Iterable[exp.Expr]) -> list[Time]:
        """The times among the expressions that cover every relation."""
        times = [self._scope.time(node) for node in nodes]
        return [time for time in times if time and self._bounds.complete(time)]

    def _group_keys(self, group: exp.Group) -> Iterator[exp.Expr]:
        """The keys of GROUP BY, without those that CUBE, ROLLUP and GROUPING SETS may leave out."""
        parts = self._select.expressions
        if any(group.args.get(key) is not None for key in _OPTIONAL):
            return  # WITH ROLLUP, for example, may leave out any key
        if group.args.get("all"):
            yield from (part for part in parts if not has_aggregate(part))
        aliases = [part for part in parts if isinstance(part, exp.Alias)]
        for key in group.expressions:
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(parts):
                yield parts[int(key.name) - 1]
            elif isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets):
                continue
            # Spark resolves a name as a column of the sources first, then as one of the result.
            elif (
                isinstance(key, exp.Column) and not key.table and not self._scope.has_column(key.name.lower())
            ):
                meant = [part for part in aliases if part.alias.lower() == key.name.lower()]
                yield meant[0] if len(meant) == 1 else key
            else:
                yield key

    def _star(self, part: exp.Expr) -> list[tuple[str, exp.Expr]] | None:
        """The columns of `*` or `a.*` in order; None if some are unknown."""
        relations = [*self._starred(part)]
        if not self._in_order or not relations or any(relation.names is None for _, relation in relations):
            return None
        columns = [
            (name, exp.column(name, alias)) for alias, relation in relations for name in relation.names or ()
        ]
        return [(name, node) for name, node in columns if name not in _left_out(part)]

    def _known_times(self, part: exp.Expr) -> list[tuple[str, exp.Expr]]:
        """The times among the columns of a `*` whose columns are not all known."""
        if not part.is_star:
            return []
        return [
            (name, exp.column(name, alias))
            for alias, relation in self._starred(part)
            for name in relation.times
            if name not in _left_out(part)
        ]

    def _starred(self, part: exp.Expr) -> Iterator[tuple[str, Relation]]:
        star = part.this if isinstance(part, exp.Column) else part
        if not {key for key, value in star.args.items() if value} <= _PLAIN_STAR:
            return
        only = part.table.lower() if isinstance(part, exp.Column) else ""
        for alias, relation in self._scope.relations.items():
            if alias not in self._hidden and (not only or alias == only):
                yield alias, relation


def shortest(times: Iterable[Time]) -> int | None:
    """The shortest windows such that rows with equal times share one; None if there are none."""
    return min((time.step_us for time in times if time.tells_apart), default=None)


def _left_out(part: exp.Expr) -> set[str]:
    star = part.this if isinstance(part, exp.Column) else part
    return {column.name.lower() for column in star.args.get("except_") or ()}


def has_aggregate(part: exp.Expr) -> bool:
    """Whether an expression contains an aggregate outside a window function."""
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Window | exp.Query):
            continue
        if is_aggregate(node):
            return True
        pending += node.iter_expressions()
    return False


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node itself is a call of an aggregate."""
    # After a comparison, ANY is a quantifier.
    if isinstance(node, exp.AggFunc) or (isinstance(node, exp.Any) and not isinstance(node.parent, exp.EQ)):
        return True
    is_named = isinstance(node, exp.Anonymous)
    return is_named and (node.name.upper() in _AGGREGATES or "_agg" in node.name.lower())
