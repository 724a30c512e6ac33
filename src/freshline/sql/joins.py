"""Whether the relations of a FROM are bound to each other in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import lcm
from typing import Final, NamedTuple

from sqlglot import exp

from freshline.sql.constants import interval_us, whole_number
from freshline.sql.scope import Scope
from freshline.sql.time import Time, TimeForm, longest

# A comparison says that its left time is not above (−1), not below (+1) or equal to (0) its right time.
_SIDES: Final[dict[type[exp.Expr], int]] = {
    exp.LT: -1,
    exp.LTE: -1,
    exp.GT: 1,
    exp.GTE: 1,
    exp.EQ: 0,
    exp.NullSafeEQ: 0,
}
_STRICT: Final = (exp.LT, exp.GT)


class _Equality(NamedTuple):
    """The rows of two relations are in the same window."""

    step_us: int
    one: str
    other: str


class TimeBounds:
    """Which relations have rows of the same window, and which have rows within a range of each other.

    The length of a window is that of its relation's rows. Ranges are measured between the starts of windows,
    because updates end at the edges of all windows.
    """

    def __init__(
        self, scope: Scope, conditions: Iterable[exp.Expr], using: Iterable[tuple[str, str, str]] = ()
    ) -> None:
        self._scope = scope
        self._aliases = [alias for alias, relation in scope.relations.items() if relation.reads]
        self._class_of = {alias: alias for alias in self._aliases}
        self.step_us = lcm(*(scope.relations[alias].step_us for alias in self._aliases))
        # For a pair: the first relation's window is at most this far above the second one's.
        self._limits: dict[tuple[str, str], int] = {}
        self._equalities: list[_Equality] = []
        self._unread: list[set[str]] = []  # relations whose comparison this class does not understand
        self.is_vague = False  # whether some may be bound more closely than this class understands
        for condition in conditions:
            for node in _parts(condition):
                self._read(node)
        for name, *pair in using:  # USING makes a column of this name equal in both
            one, other = (scope.time(exp.column(name, alias)) for alias in pair)
            if one and other:
                self._equal(one, other)
        # Shortest windows first, because longer ones then add nothing.
        for step_us, alias, another in sorted(self._equalities):
            if self._class_of[alias] != self._class_of[another]:
                self.join(alias, another, step_us)

    def join(self, one: str, other: str, step_us: int) -> None:
        """Records that the rows of two relations are in the same window."""
        ours, theirs = self._class_of[one], self._class_of[other]
        self._class_of = {each: ours if name == theirs else name for each, name in self._class_of.items()}
        self.step_us = lcm(self.step_us, step_us)
        self._limit(one, other, step_us - 1)
        self._limit(other, one, step_us - 1)

    @property
    def count(self) -> int:
        """The number of relations that read tables."""
        return len(self._aliases)

    @property
    def ranges(self) -> bool:
        """Whether one row may be made of rows from several windows."""
        return len(set(self._class_of.values())) > 1

    def complete(self, time: Time) -> bool:
        """Whether no row that contributes to a row is in a later window than this time."""
        covered = {self._class_of.get(alias) for alias in time.covers}
        return covered >= set(self._class_of.values())

    def equal_step(self, one: str, other: str) -> int | None:
        """The length of the window that two relations share."""
        is_equal = one in self._class_of and self._class_of[one] == self._class_of.get(other)
        return self.step_us if is_equal else None

    def unbound(self) -> list[str]:
        """The relations that no condition binds to the first one in time; unclear conditions may bind too."""
        spans = self._spans_us()
        pairs = [{*pair} for pair in spans if pair[::-1] in spans] + self._unread
        bound = {*self._aliases[:1]}
        while grown := {end for pair in pairs if bound & pair for end in pair} - bound:
            bound |= grown
        return [alias for alias in self._aliases if alias not in bound]

    def reach_us(self) -> int | None:
        """How far before a row's window its inputs may lie; None if unknown."""
        spans = self._spans_us()
        own = {alias: self._scope.relations[alias].reach_us for alias in self._aliases}
        if any(spans.get((alias, alias), 0) < 0 for alias in self._aliases):
            return longest(own.values())  # no row can meet the conditions
        reaches = [*own.values()]
        for newer, older in product(self._aliases, repeat=2):
            reach_us = own[older]
            if self._class_of[newer] != self._class_of[older]:
                span_us = spans.get((newer, older))
                reaches.append(None if span_us is None or reach_us is None else max(0, span_us) + reach_us)
        return longest(reaches)

    def _spans_us(self) -> dict[tuple[str, str], int]:
        """How far apart the relations of a pair can be, also through other relations."""
        spans = {(alias, alias): 0 for alias in self._aliases} | self._limits
        for via, one, other in product(self._aliases, repeat=3):
            if (one, via) in spans and (via, other) in spans:
                by_way_us = spans[one, via] + spans[via, other]
                spans[one, other] = min(by_way_us, spans.get((one, other), by_way_us))
        return spans

    def _read(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Between):
            above = self._compare(node.this, 1, node.args["low"])
            below = self._compare(node.this, -1, node.args["high"])
            is_read = above and below
        else:
            side, is_strict = _SIDES.get(type(node)), isinstance(node, _STRICT)
            is_read = side is not None and self._compare(node.this, side, node.expression, is_strict)
        mentioned = set() if is_read else self._scope.mentioned(node) & {*self._aliases}
        if len(mentioned) > 1:
            self.is_vague = True
            if self._is_range(node):
                self._unread.append(mentioned)

    def _is_range(self, node: exp.Expr) -> bool:
        """Whether a comparison that is not understood probably concerns a range of time."""
        if isinstance(node, exp.EQ):
            return any(self._scope.time(side) for side in (node.this, node.expression))
        return isinstance(node, exp.Between) or type(node) in _SIDES

    def _compare(self, left: exp.Expr, side: int, right: exp.Expr, is_strict: bool = False) -> bool:
        """Whether this class understands the comparison, even if it bounds nothing."""
        one, other = self._scope.time(left), self._scope.time(right)
        if one and other:
            if side == 0:
                return self._equal(one, other)
            return self._near(one, other, side, 0, is_strict)
        for expression, its_side, length in ((left, side, right), (right, -side, left)):
            bare = expression.unnest()
            is_absolute = isinstance(bare, exp.Abs)
            difference = self._difference(bare.this if is_absolute else bare)
            if difference is None:
                continue
            late, early = difference
            length_us = _length_us(length, late)
            if length_us is None:
                return False
            if not is_absolute:
                return self._near(late, early, its_side, length_us, is_strict)
            # A lower limit on their distance bounds nothing.
            return its_side > 0 or (
                self._near(late, early, -1, length_us, is_strict)
                and self._near(early, late, -1, length_us, is_strict)
            )
        return False

    def _difference(self, node: exp.Expr) -> tuple[Time, Time] | None:
        """The two times of an expression that is their difference."""
        node = node.unnest()
        if not isinstance(node, exp.Sub):
            return None
        left, right = self._scope.time(node.this), self._scope.time(node.expression)
        return (left, right) if left and right and left.is_like(right) else None

    def _equal(self, one: Time, other: Time) -> bool:
        is_own = one.is_own and other.is_own
        is_same = one.is_same(other) and one.low_us == one.high_us
        if one.is_like(other) and (is_own or is_same) and len(one.covers) == len(other.covers) == 1:
            (alias,), (another,) = one.covers, other.covers
            if alias != another:
                self._equalities.append(_Equality(lcm(one.step_us, other.step_us), alias, another))
        return self._near(one, other, 0, 0, False)

    def _near(self, one: Time, other: Time, side: int, length_us: int, is_strict: bool) -> bool:
        """Records that one time is below, above or equal to another plus a length. True if that is usable."""
        if not one.is_like(other) or TimeForm.FRACTION in (one.form, other.form):
            return False
        is_known = True
        if side <= 0:
            is_known &= self._at_most(one, other, length_us - is_strict)
        if side >= 0:
            is_known &= self._at_most(other, one, -length_us - is_strict)
        return is_known

    def _at_most(self, one: Time, other: Time, length_us: int) -> bool:
        """Records that one time is at most this far above another; all times that it covers are, too."""
        if len(other.covers) != 1:
            return False
        (another,) = other.covers
        for alias in one.covers:
            # How far the time's window begins before the window of its relation.
            before_us = one.step_us - self._scope.relations[alias].step_us
            if alias != another:
                self._limit(alias, another, length_us + before_us - one.low_us + other.high_us)
        return True

    def _limit(self, one: str, other: str, limit_us: int) -> None:
        self._limits[one, other] = min(limit_us, self._limits.get((one, other), limit_us))


def _parts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions of an AND of any depth."""
    pending = [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            yield node


def _length_us(node: exp.Expr, time: Time) -> int | None:
    """The length that a difference of two such times is compared with."""
    if time.form is TimeForm.NUMBER:
        count = whole_number(node)
        return None if count is None else count * time.unit_us
    return interval_us(node) if time.form is TimeForm.INSTANT else None
