"""Whether the relations of a FROM are bound to each other in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from sqlglot import exp

from freshline.definitions.sql_time import Scope, Time, interval_us

# A comparison says that its left side's time is not above (−1), not below (+1) or near (0) its right side's.
_SIDES: Final[dict[type[exp.Expr], int]] = {exp.LT: -1, exp.LTE: -1, exp.GT: 1, exp.GTE: 1, exp.EQ: 0}
_STRICT: Final = (exp.LT, exp.GT)


class TimeBounds:
    """Which relations have equal timestamps, and which have timestamps within a range of each other."""

    def __init__(self, scope: Scope, conditions: Iterable[exp.Expr]) -> None:
        self._scope = scope
        self._class_of = {alias: alias for alias, relation in scope.relations.items() if relation.reads}
        # By pair: at most so much is the first one's timestamp above the second one's; None if not known.
        self._limits: dict[tuple[str, str], int | None] = {}
        self._is_vague = False  # whether they may be bound more closely than can be told
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
        limited = {(self._class_of[one], self._class_of[other]) for one, other in self._limits}
        pairs = [{one, other} for one, other in limited if (other, one) in limited]
        bound = {next(iter(self._class_of.values()))}
        while grown := {end for pair in pairs if bound & pair for end in pair} - bound:
            bound |= grown
        return [alias for alias, name in self._class_of.items() if name not in bound]

    @property
    def reach_us(self) -> int:
        """So far before a row's timestamp, the greatest of all, lies what it may be made of, or further."""
        reach: dict[str, int] = {}
        for alias, name in self._class_of.items():
            reach[name] = max(reach.get(name, 0), self._scope.relations[alias].reach_us)
        back = [span_us + reach[older] for (_, older), span_us in self._spans_us().items()]
        return max([*reach.values(), *back], default=0)

    def _spans_us(self) -> dict[tuple[str, str], int]:
        """By pair how far apart the two can be, also by way of others; none where that is not known."""
        names = set(self._class_of.values())
        spans: dict[tuple[str, str], int] = {(name, name): 0 for name in names}
        for (one, other), limit_us in self._limits.items():
            if limit_us is None:
                return {}
            pair = self._class_of[one], self._class_of[other]
            spans[pair] = min(limit_us, spans.get(pair, limit_us))
        for via, one, other in product(names, repeat=3):
            if (one, via) in spans and (via, other) in spans:
                by_way_us = spans[one, via] + spans[via, other]
                spans[one, other] = min(by_way_us, spans.get((one, other), by_way_us))
        # What is the same by windows only is not at one distance; and some conditions no row can meet.
        is_known = not self._is_vague and not self.windows and all(spans[name, name] == 0 for name in names)
        return spans if is_known else {}

    def _read(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Between):
            above = self._compare(node.this, 1, node.args["low"])
            below = self._compare(node.this, -1, node.args["high"])
            is_read = above and below
        else:
            side, is_strict = _SIDES.get(type(node)), isinstance(node, _STRICT)
            is_read = side is not None and self._compare(node.this, side, node.expression, is_strict)
        if not is_read:
            times = [self._scope.time(column) for column in node.find_all(exp.Column)]
            compared = frozenset().union(*(time.covers for time in times if time))
            self._is_vague = self._is_vague or len(compared) > 1

    def _compare(self, left: exp.Expr, side: int, right: exp.Expr, is_strict: bool = False) -> bool:
        """Whether it says something about timestamps that is understood."""
        one, other = self._scope.time(left), self._scope.time(right)
        if one and other:
            if side or not self._same(one, other):
                self._near(one, other, side, 0, is_strict)
            return True
        is_read = False
        for expression, its_side, length in ((left, side, right), (right, -side, left)):
            bare = expression.unnest()
            is_absolute = isinstance(bare, exp.Abs)
            difference = self._scope.difference(bare.this if is_absolute else bare)
            if difference and not (is_absolute and its_side > 0):
                is_read = True
                length_us = interval_us(length)
                late, early = difference
                self._near(late, early, -1 if is_absolute else its_side, length_us, is_strict)
                if is_absolute:
                    self._near(early, late, -1, length_us, is_strict)
        return is_read

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

    def _near(self, one: Time, other: Time, side: int, length_us: int | None, is_strict: bool) -> None:
        """One time is below, above or at another and a length."""
        if side <= 0:
            self._limit(one, other, length_us, is_strict)
        if side >= 0:
            self._limit(other, one, None if length_us is None else -length_us, is_strict)

    def _limit(self, one: Time, other: Time, length_us: int | None, is_strict: bool) -> None:
        """One time is at most so much above another."""
        limit_us = None
        is_plain = all(time.window_us == 0 and len(time.covers) == 1 for time in (one, other))
        if is_plain and length_us is not None and one.shift_us is not None and other.shift_us is not None:
            limit_us = length_us + other.shift_us - one.shift_us - is_strict
        for pair in _pairs(one, other):
            if self._class_of.keys() >= {*pair}:
                known_us = self._limits.get(pair, limit_us)
                self._limits[pair] = None if known_us is None or limit_us is None else min(known_us, limit_us)


def _pairs(one: Time, other: Time) -> Iterator[tuple[str, str]]:
    return ((alias, another) for alias in one.covers for another in other.covers if alias != another)
