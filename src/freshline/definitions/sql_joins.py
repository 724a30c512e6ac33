"""Whether the relations of a FROM are bound to each other in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from sqlglot import exp

from freshline.definitions.sql_time import Scope, Time

# A comparison says that its left side's time is not above (−1), not below (+1) or near (0) its right side's.
_SIDES: Final[dict[type[exp.Expr], int]] = {exp.LT: -1, exp.LTE: -1, exp.GT: 1, exp.GTE: 1, exp.EQ: 0}


class TimeBounds:
    """Which relations have equal timestamps, and which have timestamps within a range of each other."""

    def __init__(self, scope: Scope, conditions: Iterable[exp.Expr]) -> None:
        self._scope = scope
        self._class_of = {alias: alias for alias, relation in scope.relations.items() if relation.reads}
        self._sides: dict[tuple[str, str], set[int]] = {}
        self.windows: list[int | None] = []  # lengths of windows that some have in common
        for condition in conditions:
            for node in condition.flatten() if isinstance(condition, exp.And) else (condition,):
                self._read(node.unnest())

    def using(self, name: str, joined: str, earlier: Iterable[str]) -> None:
        """A column of this name is the same in a relation and in those joined before it."""
        times = {
            alias: replace(relation.times[name], covers=frozenset({alias}))
            for alias, relation in self._scope.relations.items()
            if name in relation.times
        }
        for alias in earlier:
            if alias in times and joined in times:
                self._same(times[alias], times[joined])

    @property
    def count(self) -> int:
        """How many of the relations read tables."""
        return len(self._class_of)

    @property
    def ranges(self) -> bool:
        """Whether timestamps of one row may differ."""
        return len(set(self._class_of.values())) > 1

    def complete(self, time: Time) -> bool:
        """Whether no timestamp of a row is above this one: it follows all that are not equal."""
        covered = {self._class_of.get(alias) for alias in time.covers}
        return covered >= set(self._class_of.values())

    def are_equal(self, one: str, other: str) -> bool:
        return self._class_of.get(one) == self._class_of.get(other)

    def unbound(self) -> list[str]:
        """The relations that are not bound to the first one in time."""
        if not self._class_of:
            return []
        sides_of: dict[frozenset[str], set[int]] = {}
        for (one, other), sides in self._sides.items():
            ours, theirs = self._class_of[one], self._class_of[other]
            sides_of.setdefault(frozenset((ours, theirs)), set()).update(
                sides if ours <= theirs else (-side for side in sides)
            )
        pairs = [pair for pair, sides in sides_of.items() if {-1, 1} <= sides]
        bound = {next(iter(self._class_of.values()))}
        while grown := {end for pair in pairs if bound & pair for end in pair} - bound:
            bound |= grown
        return [alias for alias, name in self._class_of.items() if name not in bound]

    def _read(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Between):
            self._compare(node.this, 1, node.args["low"])
            self._compare(node.this, -1, node.args["high"])
        elif type(node) in _SIDES:
            self._compare(node.this, _SIDES[type(node)], node.expression)

    def _compare(self, left: exp.Expr, side: int, right: exp.Expr) -> None:
        one, other = self._scope.time(left), self._scope.time(right)
        if one and other:
            if side == 0 and self._same(one, other):
                return
            self._near(one, other, (side,) if side else (-1, 1))
            return
        for expression, its_side in ((left, side), (right, -side)):
            bare = expression.unnest()
            is_absolute = isinstance(bare, exp.Abs)
            difference = self._scope.difference(bare.this if is_absolute else bare)
            if difference and not (is_absolute and its_side > 0):
                self._near(*difference, (-1, 1) if is_absolute or not side else (its_side,))

    def _same(self, one: Time, other: Time) -> bool:
        """Whether an equality makes two timestamps, or their windows, the same."""
        lengths = {one.window_us, other.window_us}
        if one.shifted or other.shifted or None in lengths or len(lengths) != 1:
            return False
        (length_us,) = lengths
        if length_us:
            self.windows.append(length_us)
        for alias, another in _pairs(one, other):
            if alias in self._class_of and another in self._class_of:
                ours, theirs = self._class_of[alias], self._class_of[another]
                self._class_of = {
                    each: ours if name == theirs else name for each, name in self._class_of.items()
                }
        return True

    def _near(self, one: Time, other: Time, sides: tuple[int, ...]) -> None:
        for alias, another in _pairs(one, other):
            if alias in self._class_of and another in self._class_of:
                self._sides.setdefault((alias, another), set()).update(sides)
                self._sides.setdefault((another, alias), set()).update(-side for side in sides)


def _pairs(one: Time, other: Time) -> Iterator[tuple[str, str]]:
    return ((alias, another) for alias in one.covers for another in other.covers if alias != another)
